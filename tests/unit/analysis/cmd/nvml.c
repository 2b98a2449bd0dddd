/* SPDX-License-Identifier: Apache-2.0 */
/* The NVML reader of `cuflight run`. */
#include "analysis/cmd/target/nvml_reader.h"
#include "tests/unit/fixtures/nvml_cases.h"

int main(void) { return nvml_cases_run((struct nvml_reader){ nvml_bind, nvml_read }); }
