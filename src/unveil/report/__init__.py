"""An audit as one HTML file, and as JSON."""

from unveil.report.page import write_json, write_report

__all__ = ["write_json", "write_report"]
