#!/bin/sh
# A check before encodings are released: for any CI system. Stops the release where records leak.
set -u
python -m pip install --quiet ./unveil-*.whl        # the wheel that `make wheel` builds
unveil audit --config audit.toml --json > audit.json
case $? in
    0) echo "no attack got records back; read unveil-audit/report.html all the same" ;;
    1) echo "records leak: see unveil-audit/report.html"; exit 1 ;;
    *) echo "the audit could not run: see audit.json"; exit 1 ;;
esac
