# SPDX-License-Identifier: Apache-2.0
"""Runs tensors.py under the recorder; prints TAP: one line a tensor, and one for the lines that people read."""
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
folder_of_marks = os.path.join(here, "../../e2e/stacks/python_frames")
sys.path.insert(0, folder_of_marks)
sys.dont_write_bytecode = True
import matrix  # noqa: E402 (its tests run when it is the program)

python = "/usr/bin/python3"
if subprocess.run([python, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode:
    print("1..0 # SKIP no torch here")
    sys.exit(0)
report, folder = matrix.record([python, here + "/tensors.py", folder_of_marks, "FOLDER/truth"], "start=1:stack_depth=256")
rows, truth = matrix.rows_of(report), matrix.truth_of(folder + "/truth")
count = failed = 0


def say(good, name, why=""):
    global count, failed
    count += 1
    failed += not good
    print("%sok %d - %s" % ("" if good else "not ", count, name))
    if not good:
        print("# %s" % (why,))


for frames, (size, label) in truth.items():
    say(rows.get(frames) == size, "host tensor, " + label, (frames, [k for k, v in rows.items() if v == size]))
text = subprocess.run([matrix.cuflight, "report", folder], stdout=subprocess.PIPE, text=True, env=dict(os.environ, COLUMNS="200")).stdout
say("(tensors.py:" in text, "the report's lines say tensors.py and the line", text[:3000])
print("1..%d" % count)
matrix.shutil.rmtree(matrix.work)
sys.exit(failed > 0)
