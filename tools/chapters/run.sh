#!/bin/sh
# Merge the modules into chapters, one room a commit: sh tools/chapters/run.sh [PYTHON]
# Nobody else may work in the tree. Stops at the first room that does not lint or cannot be imported.
set -e
python=${1:-.venv/bin/python}
bin=$(dirname "$python")
test -z "$(git status --porcelain)" || { echo "the tree is not clean"; exit 1; }
export PYTHONPATH="$PWD/src"

"$python" tools/chapters/check_plan.py src/cosilo
"$python" tools/chapters/rename.py
"$bin/ruff" check -q
git commit -qam "Rename names that two modules of one chapter bind"

for room in aggregation cli comparison config coordination data engines export federation learners methods \
    privacy protocol report reproduce runs silo top; do
    echo "== $room"
    "$python" tools/chapters/merge.py "$room"
    "$bin/ruff" check -q || "$bin/ruff" check
    "$python" -c "import cosilo; [getattr(cosilo, name) for name in cosilo.__all__]"
    "$python" -m cosilo.cli.main --help > /dev/null
    "$bin/lint-imports" > /tmp/contracts.$$ || { cat /tmp/contracts.$$; exit 1; }
    rm /tmp/contracts.$$
    git add -A
    git commit -qm "Merge the modules of $room into chapters"
done
