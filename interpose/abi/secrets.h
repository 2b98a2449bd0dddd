/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words by which secrets are recognised: the recorder hides them, and `cuflight pack` looks again.
 * Contract: data only; all in lower case; comparison ignores case.
 */
#ifndef CUF_SECRETS_H
#define CUF_SECRETS_H

/* A part of a name that is enough by itself. */
#define CUF_SECRET_NAMES \
	"token", "secret", "passw", "passphrase", "api-key", "api_key", "apikey", "credential", \
	"auth", "private-key", "private_key", "access-key", "access_key", "cookie", "signature", \
	"login"

/* Short words, which count only between separators: "key" is in "keyboard". */
#define CUF_SECRET_PIECES "pass", "pwd", "pw", "key", "sig", "session"

/* How tokens begin whose issuer gave them a recognisable beginning. */
#define CUF_SECRET_HEADS \
	"hf_", "sk-", "sk_live_", "rk_live_", "ghp_", "gho_", "ghs_", "ghu_", "ghr_", \
	"github_pat_", "xoxa-", "xoxb-", "xoxp-", "xoxs-", "akia", "asia", "aiza", "ya29.", \
	"eyj", "nvapi-", "glpat-", "npm_", "pypi-", "dckr_pat_", "-----begin"
#define CUF_SECRET_LEAST_AFTER_HEAD 8

#endif
