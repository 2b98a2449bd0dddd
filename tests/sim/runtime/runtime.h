/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a small libcudart of our own. It has its driver only as pointers, looked up as
 * NVIDIA's runtime does (runtime.c). Nearly every CUDA program reaches the driver that way, so the
 * victims must, too.
 *
 * Contract. enter() loads the driver, makes the thread's device current and returns 0, or the
 * error. leave() keeps the error for cudaGetLastError. cudaError_t and CUresult agree in the
 * numbers used here. Safe from any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interpose/abi/cuda_types.h"

#define API __attribute__((visibility("default")))
#define SIM_LIBC(ret, name, params)
#define SIM_FOREIGN(ret, name, params)
#define SIM_CUDA(ret, name, params)
#define SIM_CUFLIGHT(ret, name, params)
#define SIM_CUDART(ret, name, params) API ret name params;
#define HOOK(id, lib, ret, name, params, args, role) SIM_##lib(ret, name, params)
#include "interpose/abi/hooks.def"
#define EXPORT(name, params) API cudaError_t name params; API cudaError_t name params
#define FORWARD(field, args) { cudaError_t entered_ = enter(); return leave(entered_ ? entered_ : (driver.field args)); }

enum { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorInitializationError = 3,
       cudaErrorInsufficientDriver = 35, cudaErrorInvalidDevice = 101 };

struct driver {
#define ASK(field, base, version, flags, exact, params) CUresult (*field) params;
#include "tests/sim/runtime/runtime_driver.def"
	CUresult (*get_proc)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
};
extern struct driver driver;

cudaError_t enter(void);
cudaError_t leave(cudaError_t result);
int this_device(void);
