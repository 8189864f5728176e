"""An audit as one HTML page and as JSON; nothing is computed here that is not in the `Audit`."""

from unveil.report.page import write_json, write_report

__all__ = ["write_json", "write_report"]
