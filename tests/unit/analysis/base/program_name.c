/* SPDX-License-Identifier: Apache-2.0 */
/* Interpreters are called by what they run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "analysis/base/paths.h"

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
		{ "/opt/jdk/bin/java", "java -cp bin Grow 300", "Grow" },
		{ "/opt/jdk/bin/java", "java -Xmx64m -classpath a:b com.example.Main",
		  "com.example.Main" },
		{ "/opt/jdk/bin/java", "java -p mods --add-opens a/b=c -m app/com.example.Main",
		  "com.example.Main" },
		{ "/opt/jdk/bin/java", "java --class-path=bin -Dkey=value Grow", "Grow" },
		{ "/usr/bin/node", "node -r ./trace.js --import tsx server.ts", "server.ts" },
		{ "/usr/bin/node", "node --expose-gc -e work()", "node" },
		{ "/usr/bin/node", "node --eval work()", "node" },
		{ "/usr/bin/python3.11", "python3 -X dev -m pkg.serve", "pkg.serve" },
		{ "/usr/local/go/bin/go", "go run -tags gpu ./cmd/serve.go --fast", "serve.go" },
		{ "/usr/local/go/bin/gopher", "gopher run a", "gopher" },
		{ "/usr/bin/ruby3.1", "ruby -I lib -r json bin/serve", "serve" },
		{ "/usr/bin/perl", "perl -w -I lib serve.pl", "serve.pl" },
		{ "/usr/bin/perl", "perl -e work", "perl" },
		{ "/usr/bin/php8.2", "php -d memory_limit=1G -f serve.php", "serve.php" },
		{ "/usr/bin/dotnet", "dotnet exec --depsfile a.json app.dll", "app.dll" },
		{ "/usr/bin/deno", "deno run --allow-net server.ts", "server.ts" },
		{ "/usr/bin/bash", "bash -o pipefail run.sh", "run.sh" },
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
