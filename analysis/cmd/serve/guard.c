/* SPDX-License-Identifier: Apache-2.0 */
/* Host names, tokens and addresses. */
#include "analysis/cmd/serve/guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "analysis/cmd/cli/say.h"

/* Cuts ":9741" off. False: it is no host. */
static bool cut_port(char *host, const char **port)
{
	char *colon, *end;

	*port = "";
	if (*host == '[') {
		end = strchr(host, ']');
		if (!end || (end[1] && end[1] != ':'))
			return false;
		if (end[1])
			*port = end + 2;
		*end = 0;
		memmove(host, host + 1, strlen(host));
		return true;
	}
	colon = strrchr(host, ':');
	if (colon) {
		*colon = 0;
		*port = colon + 1;
	}
	return true;
}

static bool is_number(const char *host)
{
	struct in6_addr address;

	return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

bool guard_knows_host(const char *host, const char *const *names, size_t count)
{
	const char *port;
	char name[256];

	if (!host || strlen(host) >= sizeof name)
		return false;
	strcpy(name, host);
	if (!cut_port(name, &port))
		return false;
	if (is_number(name) || !strcasecmp(name, "localhost"))
		return true;
	for (size_t i = 0; i < count; i++)
		if (!strcasecmp(name, names[i]))
			return true;
	return false;
}

bool guard_accepts(const char *token, const char *authorization)
{
	static const char scheme[] = "Bearer ";
	size_t bytes = strlen(token);
	unsigned char differs = 0;
	const char *given;

	if (!bytes)
		return true;
	if (!authorization || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
		return false;
	given = authorization + sizeof scheme - 1;
	if (strlen(given) != bytes)
		return false;
	for (size_t i = 0; i < bytes; i++)
		differs |= (unsigned char)(given[i] ^ token[i]);
	return !differs;
}

int guard_read_token(const char *path, char *token, size_t bytes)
{
	FILE *file = fopen(path, "re");

	if (!file) {
		say_error("cannot read the token of '%s': %s", path, strerror(errno));
		return -1;
	}
	if (!fgets(token, (int)bytes, file))
		*token = 0;
	fclose(file);
	token[strcspn(token, "\r\n")] = 0;
	if (strlen(token) >= 16)
		return 0;
	say_error("the first line of '%s' is no token: it needs 16 characters at least; "
		  "make one with: head -c 24 /dev/urandom | base64", path);
	return -1;
}

bool guard_parse_address(const char *typed, struct listen_address *out)
{
	struct in6_addr six;
	struct in_addr four;
	const char *port;
	char *end;

	*out = (struct listen_address){ 0 };
	if (strlen(typed) >= sizeof out->text)
		return false;
	strcpy(out->text, typed);
	if (!cut_port(out->text, &port) || !*port || strspn(port, "0123456789") != strlen(port))
		return false;
	out->port = (unsigned)strtoul(port, &end, 10);
	if (!*out->text)
		strcpy(out->text, "0.0.0.0");
	if (!strcmp(out->text, "localhost"))
		strcpy(out->text, "127.0.0.1");
	if (inet_pton(AF_INET, out->text, &four) == 1) {
		out->is_loopback = ntohl(four.s_addr) >> 24 == 127;
	} else if (inet_pton(AF_INET6, out->text, &six) == 1) {
		out->is_ipv6 = true;
		out->is_loopback = IN6_IS_ADDR_LOOPBACK(&six);
	} else {
		return false;
	}
	return out->port <= 65535;
}
