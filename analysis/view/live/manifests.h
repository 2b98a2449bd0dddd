/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `cuflight env --k8s` prints: manifests of Kubernetes that bring the library into a pod,
 * serve what it records, and tell at the next start why the last one was killed. Contract: pure
 * writers; all values are escaped; write errors stay in the stream.
 */
#pragma once

#include <stdio.h>

struct manifest {
	const char *image;      /* has /bin/cuflight */
	const char *library;    /* below folder */
	const char *folder;     /* where the image installs itself */
	const char *recordings; /* a directory of the containers, absolute */
	const char *options;    /* CUFLIGHT_OPTIONS of the server */
};

/* A sidecar in each pod; one server for each node; only the start of the next pod. */
void manifest_sidecar(FILE *out, const struct manifest *manifest);
void manifest_daemonset(FILE *out, const struct manifest *manifest);
void manifest_init(FILE *out, const struct manifest *manifest);
