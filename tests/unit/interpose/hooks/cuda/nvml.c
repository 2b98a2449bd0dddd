/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder's NVML reader. */
#include "interpose/hooks/cuda/nvml.h"
#include "tests/unit/fixtures/nvml_cases.h"

int main(void) { return nvml_cases_run((struct nvml_reader){ cuf_nvml_bind, cuf_nvml_read }); }
