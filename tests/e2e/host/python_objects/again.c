/* SPDX-License-Identifier: Apache-2.0 */
/* again FIRST SECOND: an interpreter runs the text FIRST and ends; a second one runs SECOND. */
#include <Python.h>

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	for (int i = 1; i < argc; i++) {
		Py_InitializeEx(0);
		if (PyRun_SimpleString(argv[i]) || Py_FinalizeEx())
			return 1;
	}
	return 1; /* SECOND does not come back */
}
