#!/usr/bin/env bash
# Does the wheel work for someone who has nothing else? Builds it, installs it into a new environment,
# and runs it in an empty folder, away from the repository. `make wheel` calls this.
set -euo pipefail
unset PYTHONPATH  # else the sources might be tried instead of the wheel
root=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# 1. Build from a copy, so that nothing is left behind in the repository.
mkdir "$work/source"
(cd "$root" && git ls-files -z | tar --null --files-from=- --create) | tar --extract --directory "$work/source"
"$python" -m venv "$work/venv"
pip="$work/venv/bin/python -m pip --quiet --disable-pip-version-check"
$pip wheel --no-deps --wheel-dir "$work" "$work/source"
wheel=$(ls "$work"/*.whl)
mkdir -p "$root/dist"
cp "$wheel" "$root/dist/"

# 2. A wheel is fetched by every new user: 2 MB at most.
size=$(stat --format %s "$wheel")
echo "$(basename "$wheel"): $((size / 1024)) KiB"
[ "$size" -le 2000000 ]

# 3. Install it as container/Containerfile does, from wheels alone; go elsewhere, use every way in.
$pip wheel --wheel-dir "$work/wheels" "$wheel[images]"
$pip install --no-index --find-links="$work/wheels" 'unveil[images]'
mkdir "$work/elsewhere"
cd "$work/elsewhere"
bin="$work/venv/bin"
"$bin/unveil" --version
"$bin/python" -m unveil doctor
"$bin/unveil" simulate run --k-private 2 --n-private 20 --m 140 --d 64 --seed 0
"$bin/unveil" attack run
"$bin/unveil" score run
printf 'name;city;born;pay\nann;Bonn;1980-01-02;1,5\nbob;Rome;1981-03-04;\ncid;Bonn;1979-05-06;2,5\ndan;Oslo;1990-07-08;4,5\neve;Rome;1985-02-03;3,25\n' > people.csv
"$bin/unveil" audit --private people.csv --text one-hot --missing mean --seeds 1 --out audit --json > audit.json
[ -s audit/report.html ]
"$bin/python" -c 'import json; print(json.load(open("audit.json"))["verdict"]["headline"])'
"$bin/python" -c 'import unveil; assert unveil.Scheme(k_private=2).k_private == 2'

# 4. A user's own script is checked by mypy against the types in the wheel.
$pip install mypy
cp "$root/examples/typed_use.py" .
"$bin/python" -m mypy --strict typed_use.py
"$bin/python" typed_use.py
echo "The wheel works on its own: dist/$(basename "$wheel")"
