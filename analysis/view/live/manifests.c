/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts with holes: "@x" is a value of the manifest, in YAML's double quotes. A container that is
 * ours runs without rights that it does not need, with limits, and cannot write its own image.
 */
#include "analysis/view/live/manifests.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/view/live/rules.h"

static void put_quoted(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++)
		if ((unsigned char)*text < ' ')
			fprintf(out, "\\x%02x", (unsigned)*text);
		else
			fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	fputc('"', out);
}

static const char *value_of(const struct manifest *manifest, char hole)
{
	switch (hole) {
	case 'i': return manifest->image;
	case 'l': return manifest->library;
	case 'f': return manifest->folder;
	case 'r': return manifest->recordings;
	default: return manifest->options;
	}
}

static void put_template(FILE *out, const struct manifest *manifest, const char *text)
{
	for (const char *hole; (hole = strchr(text, '@')); text = hole + 2) {
		fwrite(text, 1, (size_t)(hole - text), out);
		put_quoted(out, value_of(manifest, hole[1]));
	}
	fputs(text, out);
}

/* ---- parts ---- */

#define HEAD "# Printed by cuflight " CUFLIGHT_VERSION ": cuflight env --k8s="

#define TOKEN \
	"# Who scrapes needs a token, because pages have names and command lines:\n" \
	"#   kubectl create secret generic cuflight \\\n" \
	"#     --from-literal=token=\"$(openssl rand -hex 32)\"\n"

/* A container of ours, 4 columns deep, up to its mounts. */
#define LOCKED \
	"        securityContext:\n" \
	"          allowPrivilegeEscalation: false\n" \
	"          readOnlyRootFilesystem: true\n" \
	"          capabilities: {drop: [ALL]}\n"

#define SMALL \
	"        resources:\n" \
	"          requests: {cpu: 10m, memory: 16Mi}\n" \
	"          limits: {cpu: 500m, memory: 64Mi}\n"

/* With --memory=128MiB two processes that analyse, a report and a pass, fit next to the server. */
#define SERVER_RESOURCES \
	"        resources:\n" \
	"          requests: {cpu: 20m, memory: 64Mi}\n" \
	"          limits: {cpu: 500m, memory: 384Mi}\n"

#define INSTALL \
	"      - name: cuflight-install # the library, for the server's LD_PRELOAD\n" \
	"        image: @i\n" \
	"        command: [/bin/cuflight, install, @f]\n" \
	LOCKED SMALL \
	"        volumeMounts:\n" \
	"        - {name: cuflight, mountPath: @f}\n"

#define SERVE_PORT \
	"        ports:\n" \
	"        - {name: cuflight, containerPort: 9741}\n" \
	"        livenessProbe:\n" \
	"          httpGet: {path: /healthz, port: cuflight}\n" \
	"          periodSeconds: 30\n"

/* What the user's container gets; its own fields stay as they are. */
#define ONE_USER \
	"      securityContext: # one user: others cannot see who still records\n" \
	"        runAsNonRoot: true\n" \
	"        runAsUser: 1000 # yours\n" \
	"        runAsGroup: 1000\n" \
	"        fsGroup: 1000\n"

#define NAMESPACE \
	"        - name: POD_NAMESPACE\n" \
	"          valueFrom: {fieldRef: {fieldPath: metadata.namespace}}\n"

#define SERVER_ENVIRONMENT \
	"      containers:\n" \
	"      - name: server # yours\n" \
	"        image: server # yours\n" \
	"        env:\n" \
	"        - {name: LD_PRELOAD, value: @l}\n" \
	"        - {name: CUFLIGHT_OUTPUT, value: @r}\n" \
	"        - {name: CUFLIGHT_OPTIONS, value: @o}\n"

#define WORKLOAD(form) \
	"---\n" \
	"apiVersion: apps/v1\n" \
	"kind: Deployment\n" \
	"metadata:\n" \
	"  name: server # yours\n" \
	"spec:\n" \
	"  selector:\n" \
	"    matchLabels: {app: server} # yours\n" \
	"  template:\n" \
	"    metadata:\n" \
	"      labels: {app: server, cuflight: " form "}\n" \
	"    spec:\n"

#define LIBRARY_VOLUME \
	"      - name: cuflight\n" \
	"        emptyDir: {sizeLimit: 64Mi}\n"

static const char pod_monitor[] =
	"---\n"
	"apiVersion: monitoring.coreos.com/v1\n"
	"kind: PodMonitor\n"
	"metadata:\n"
	"  name: cuflight\n"
	"spec:\n"
	"  selector:\n"
	"    matchLabels: {cuflight: %s}\n"
	"  podMetricsEndpoints:\n"
	"  - port: cuflight\n"
	"    interval: 15s\n"
	"    honorLabels: true\n"
	"    authorization:\n"
	"      credentials: {name: cuflight, key: token}\n";

/* The file that `cuflight rules` prints, as the spec. */
static void put_rules(FILE *out)
{
	char *text = NULL, *line, *rest;
	size_t bytes = 0;
	FILE *memory = open_memstream(&text, &bytes);

	fputs("---\napiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n"
	      "  name: cuflight\nspec:\n", out);
	if (memory) {
		rules_prometheus(memory);
		fclose(memory);
	}
	for (rest = text; rest && (line = strsep(&rest, "\n")); )
		if (*line)
			fprintf(out, "  %s\n", line);
	free(text);
}

/* ---- forms ---- */

static const char sidecar[] =
	HEAD "sidecar\n"
	"# A sidecar serves what the server records, and its log has the report of each run\n"
	"# that ended: when the kernel kills the server, the sidecar lives.\n"
	TOKEN
	"# Merge the pod's template into yours, where \"yours\" is written.\n"
	WORKLOAD("sidecar")
	ONE_USER
	"      initContainers:\n"
	INSTALL
	"      - name: cuflight\n"
	"        image: @i\n"
	"        restartPolicy: Always # a sidecar: it starts before the server\n"
	"        command: [/bin/cuflight, serve, '--listen=:9741',\n"
	"          --token-file=/etc/cuflight/token, --memory=128MiB, --report-ended,\n"
	"          --termination-log=/dev/termination-log, @r]\n"
	LOCKED SERVER_RESOURCES SERVE_PORT
	"        volumeMounts:\n"
	"        - {name: cuflight-recordings, mountPath: @r}\n"
	"        - {name: cuflight-token, mountPath: /etc/cuflight, readOnly: true}\n"
	SERVER_ENVIRONMENT
	"        volumeMounts:\n"
	"        - {name: cuflight, mountPath: @f, readOnly: true}\n"
	"        - {name: cuflight-recordings, mountPath: @r}\n"
	"      volumes:\n"
	LIBRARY_VOLUME
	"      - name: cuflight-recordings # survives the containers; the sidecar's log the pod\n"
	"        emptyDir: {sizeLimit: 2Gi}\n"
	"      - name: cuflight-token\n"
	"        secret: {secretName: cuflight, defaultMode: 0440}\n";

void manifest_sidecar(FILE *out, const struct manifest *manifest)
{
	put_template(out, manifest, sidecar);
	fprintf(out, pod_monitor, "sidecar");
	put_rules(out);
}

static const char daemonset[] =
	HEAD "daemonset\n"
	"# One server for each node. Recordings survive their pods, in /var/lib/cuflight of the\n"
	"# node, each pod's in a folder of its own, which is all that the pod sees of it.\n"
	"# A pod whose folder was empty for longer than --days has lost it until it restarts.\n"
	"# Servers that are not root need: mkdir -m 0777 /var/lib/cuflight, on each node.\n"
	TOKEN
	"---\n"
	"apiVersion: apps/v1\n"
	"kind: DaemonSet\n"
	"metadata:\n"
	"  name: cuflight\n"
	"spec:\n"
	"  selector:\n"
	"    matchLabels: {cuflight: daemonset}\n"
	"  template:\n"
	"    metadata:\n"
	"      labels: {cuflight: daemonset}\n"
	"    spec:\n"
	"      automountServiceAccountToken: false\n"
	"      tolerations:\n"
	"      - operator: Exists\n"
	"      containers:\n"
	"      - name: cuflight\n"
	"        image: @i\n"
	"        command: [/bin/cuflight, serve, '--listen=:9741',\n"
	"          --token-file=/etc/cuflight/token, --memory=128MiB,\n"
	"          --labels-from-path=namespace/pod/container, --report-ended,\n"
	"          --termination-log=/dev/termination-log, @r]\n"
	"        securityContext: # reads files of all users; asks who still writes them\n"
	"          runAsUser: 0\n"
	"          allowPrivilegeEscalation: false\n"
	"          readOnlyRootFilesystem: true\n"
	"          capabilities: {drop: [ALL], add: [DAC_OVERRIDE, LEASE]}\n"
	SERVER_RESOURCES SERVE_PORT
	"        volumeMounts:\n"
	"        - {name: cuflight-recordings, mountPath: @r}\n"
	"        - {name: cuflight-token, mountPath: /etc/cuflight, readOnly: true}\n"
	"      - name: cuflight-clean\n"
	"        image: @i\n"
	"        command: [/bin/cuflight, clean, --recursive, --days=7, --every=3600, --yes, @r]\n"
	"        securityContext:\n"
	"          runAsUser: 0\n"
	"          allowPrivilegeEscalation: false\n"
	"          readOnlyRootFilesystem: true\n"
	"          capabilities: {drop: [ALL], add: [DAC_OVERRIDE, LEASE]}\n"
	SERVER_RESOURCES
	"        volumeMounts:\n"
	"        - {name: cuflight-recordings, mountPath: @r}\n"
	"      volumes:\n"
	"      - name: cuflight-recordings\n"
	"        hostPath: {path: /var/lib/cuflight, type: DirectoryOrCreate}\n"
	"      - name: cuflight-token\n"
	"        secret: {secretName: cuflight, defaultMode: 0400}\n"
	"# Merge the pod's template into yours, where \"yours\" is written.\n"
	WORKLOAD("recorded")
	"      initContainers:\n"
	INSTALL
	SERVER_ENVIRONMENT
	NAMESPACE
	"        - name: POD_NAME\n"
	"          valueFrom: {fieldRef: {fieldPath: metadata.name}}\n"
	"        volumeMounts:\n"
	"        - {name: cuflight, mountPath: @f, readOnly: true}\n"
	"        - name: cuflight-recordings\n"
	"          mountPath: @r\n"
	"          subPathExpr: $(POD_NAMESPACE)/$(POD_NAME)/server # the container's name\n"
	"      volumes:\n"
	LIBRARY_VOLUME
	"      - name: cuflight-recordings\n"
	"        hostPath: {path: /var/lib/cuflight, type: DirectoryOrCreate}\n";

void manifest_daemonset(FILE *out, const struct manifest *manifest)
{
	put_template(out, manifest, daemonset);
	fprintf(out, pod_monitor, "daemonset");
	put_rules(out);
}

static const char init[] =
	HEAD "init\n"
	"# Nothing of ours runs next to the server. The next pod on the node tells, in the log\n"
	"# and the message of its container cuflight-report, why the last one ended. A container\n"
	"# that restarts in its pod runs no init containers: there, take --k8s=sidecar.\n"
	"# Servers that are not root need: mkdir -m 0777 /var/lib/cuflight, on each node.\n"
	"# Merge the pod's template into yours, where \"yours\" is written.\n"
	WORKLOAD("init") ONE_USER
	"      initContainers:\n"
	INSTALL
	"      - name: cuflight-report\n"
	"        image: @i\n"
	"        command: [/bin/cuflight, report, --new,\n"
	"          --termination-log=/dev/termination-log, @r]\n"
	"        env:\n"
	NAMESPACE
	LOCKED SERVER_RESOURCES
	"        volumeMounts:\n"
	"        - name: cuflight-recordings\n"
	"          mountPath: @r\n"
	"          subPathExpr: $(POD_NAMESPACE)/server # yours: of the pods of one workload\n"
	SERVER_ENVIRONMENT
	NAMESPACE
	"        volumeMounts:\n"
	"        - {name: cuflight, mountPath: @f, readOnly: true}\n"
	"        - name: cuflight-recordings\n"
	"          mountPath: @r\n"
	"          subPathExpr: $(POD_NAMESPACE)/server # yours: the same\n"
	"      volumes:\n"
	LIBRARY_VOLUME
	"      - name: cuflight-recordings\n"
	"        hostPath: {path: /var/lib/cuflight, type: DirectoryOrCreate}\n";

void manifest_init(FILE *out, const struct manifest *manifest)
{
	put_template(out, manifest, init);
}
