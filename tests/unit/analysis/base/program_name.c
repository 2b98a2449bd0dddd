/* SPDX-License-Identifier: Apache-2.0 */
/* Interpreters are called by what they run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "analysis/base/program_name.h"

static void test_program_name(void **state)
{
	static const struct { const char *exe, *cmdline, *name; } rows[] = {
		{ "/usr/bin/python3.11", "python3 agent.py --fast", "agent.py" },
		{ "/usr/bin/python3.11", "python3 -u /srv/app/agent.py", "agent.py" },
		{ "/usr/bin/python3.13t", "python3 -X dev -W error agent.py", "agent.py" },
		{ "/usr/bin/python3.11", "python3 -m pkg.serve 8000", "pkg.serve" },
		{ "/usr/bin/python3.11", "python3 -c print(1)", "python3.11" },
		{ "/usr/bin/python3.11", "python3", "python3.11" },
		{ "/usr/bin/python3.11", "python3 -", "python3.11" },
		{ "/usr/bin/node", "node --max-old-space-size=64 dist/server.js", "server.js" },
		{ "/usr/bin/nodejs", "nodejs app.js", "app.js" },
		{ "/opt/jdk/bin/java", "java -Xmx1g -jar /opt/app.jar", "app.jar" },
		{ "/opt/jdk/bin/java", "java com.example.Main", "com.example.Main" },
		{ "/opt/jdk/bin/javac", "javac Main.java", "javac" },
		{ "/usr/bin/bash", "bash ./run.sh", "run.sh" },
		{ "/srv/server", "server python agent.py", "server" },
		{ "/srv/a dir/", "a dir/ x", "?" },
		{ "", "", "?" },
	};
	char name[64];
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		program_name(rows[i].exe, rows[i].cmdline, name, sizeof name);
		assert_string_equal(name, rows[i].name);
	}
	program_name("/usr/bin/server", "", name, 4);
	assert_string_equal(name, "ser");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_program_name) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
