/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readings of NVML, over an NVML of a few variables: every release's names and layouts, and answers that no good driver
 * gives. The recorder and `cuflight run` have a reader each; these cases hold for both.
 * Contract: a test program defines main as nvml_cases_run with its reader.
 */
#ifndef UNIT_NVML_CASES_H
#define UNIT_NVML_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "interpose/abi/nvml.h"

/* ---- what it answers ---- */

static struct {
	int initialised, init_result, list_result, handle_result, memory_result;
	unsigned count, said_count;    /* records written, and how many it says there are */
	size_t record_bytes, written_bytes; /* written_bytes: of each record, those that are really stored */
	struct cuf_nvml_process_long records[CUF_GPU_PROCESSES_MAX];
	char asked_for[64];
	bool mig;
} fake;

static int init(void)
{
	fake.initialised += !fake.init_result;
	return fake.init_result;
}

static int shutdown(void) { fake.initialised--; return 0; }

static int by_uuid(const char *uuid, void **device)
{
	snprintf(fake.asked_for, sizeof fake.asked_for, "%s", uuid);
	*device = &fake;
	return fake.mig && strncmp(uuid, "MIG-", 4) ? 6 : fake.handle_result;
}

static int by_bus(const char *bus, void **device)
{
	snprintf(fake.asked_for, sizeof fake.asked_for, "%s", bus);
	*device = &fake;
	return fake.handle_result;
}

static int memory_2(void *device, struct cuf_nvml_memory_2 *memory)
{
	assert_int_equal(memory->version, 0x02000028); /* as nvidia-ml-py has it */
	memory->total_bytes = 80;
	memory->reserved_bytes = 1;
	memory->free_bytes = 20;
	memory->used_bytes = 59;
	return fake.memory_result;
}

static int memory_1(void *device, struct cuf_nvml_memory *memory)
{
	*memory = (struct cuf_nvml_memory){ 81, 21, 60 };
	return 0;
}

static int list(void *device, unsigned *count, void *records)
{
	assert_true(device == &fake);
	assert_true(*count <= CUF_GPU_PROCESSES_MAX);
	for (unsigned i = 0; i < fake.count; i++)
		memcpy((char *)records + i * fake.record_bytes, &fake.records[i], fake.written_bytes);
	*count = fake.said_count;
	return fake.list_result;
}

static int graphics(void *device, unsigned *count, void *records)
{
	const struct cuf_nvml_process record = { 50, 0, 500 }, also = { 10, 0, 90 };
	memcpy(records, &record, sizeof record);
	memcpy((char *)records + sizeof record, &also, sizeof also);
	*count = 2;
	return 0;
}

static int refused(void *device, unsigned *count, void *records) { return 4; }

static struct cuf_gpu_reading reading;
static _Alignas(uint64_t) uint8_t room[CUF_NVML_ROOM_BYTES];
static struct cuf_nvml nvml;
static struct cuf_device device;

/* What is tested: set by each test program. */
static struct nvml_reader {
	bool (*bind)(struct cuf_nvml *nvml, void *(*find)(const void *library, const char *name), const void *library);
	void (*read)(const struct cuf_nvml *nvml, const struct cuf_device *device, uint8_t *room, struct cuf_gpu_reading *reading);
} reader;

static int before_each(void **state)
{
	memset(&fake, 0, sizeof fake);
	memset(&device, 0, sizeof device);
	device.ordinal = 3;
	device.uuid[0] = 0xab;
	device.uuid[15] = 1;
	strcpy(device.pci, "0000:81:00.0");
	nvml = (struct cuf_nvml){ .nvmlInit_v2 = init, .nvmlShutdown = shutdown, .nvmlDeviceGetHandleByUUID = by_uuid, .nvmlDeviceGetHandleByPciBusId_v2 = by_bus,
		.nvmlDeviceGetMemoryInfo_v2 = memory_2, .nvmlDeviceGetMemoryInfo = memory_1, .nvmlDeviceGetComputeRunningProcesses_v3 = list };
	fake.count = fake.said_count = 2;
	fake.record_bytes = fake.written_bytes = 24;
	fake.records[0] = (struct cuf_nvml_process_long){ { 10, 0, 100 }, UINT32_MAX, UINT32_MAX, 0 };
	fake.records[1] = (struct cuf_nvml_process_long){ { 20, 0, UINT64_MAX }, UINT32_MAX, UINT32_MAX, 0 };
	return 0;
}

static void ask(void)
{
	memset(&reading, 0x77, sizeof reading);
	reader.read(&nvml, &device, room, &reading);
	assert_int_equal(fake.initialised, 0); /* as open as before, whatever was answered */
}

/* ---- every release ---- */

static void assert_two(void)
{
	assert_int_equal(reading.head.failed, 0);
	assert_int_equal(reading.head.stored_count, 2);
	assert_int_equal(reading.head.reported_count, 2);
	assert_int_equal(reading.processes[0].pid, 10);
	assert_int_equal(reading.processes[0].used_bytes, 100);
	assert_int_equal(reading.processes[0].flags, CUF_GPU_PROCESS_COMPUTE);
	assert_string_equal(reading.processes[0].name, "");
	assert_int_equal(reading.processes[1].pid, 20);
	assert_int_equal(reading.processes[1].used_bytes, CUF_UNKNOWN); /* not available is not 0 */
}

static void test_nvml__records_of_every_length(void **state)
{
	static const size_t lengths[] = { 16, 24, 32 };
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		fake.record_bytes = fake.written_bytes = lengths[i];
		ask();
		assert_two();
	}
	assert_int_equal(reading.head.device, 3);
	assert_int_equal(reading.head.meta.type, CUF_META_GPU_PROCESSES);
	assert_int_equal(cuf_gpu_reading_bytes(&reading), 88 + 64);
}

static void test_nvml__the_newest_name_that_there_is(void **state)
{
	nvml.nvmlDeviceGetComputeRunningProcesses_v2 = refused;
	nvml.nvmlDeviceGetComputeRunningProcesses = refused;
	ask();
	assert_two();
	nvml.nvmlDeviceGetComputeRunningProcesses_v3 = NULL;
	nvml.nvmlDeviceGetComputeRunningProcesses_v2 = list;
	ask();
	assert_two();
	nvml.nvmlDeviceGetComputeRunningProcesses_v2 = NULL;
	nvml.nvmlDeviceGetComputeRunningProcesses = list;
	ask();
	assert_two();
	nvml.nvmlDeviceGetComputeRunningProcesses = NULL;
	ask();
	assert_int_equal(reading.head.result, CUF_NVML_FUNCTION_NOT_FOUND);
	assert_int_equal(reading.head.stored_count, 0);
}

static void test_nvml__memory_of_either_version(void **state)
{
	ask();
	assert_int_equal(reading.head.total_bytes, 80);
	assert_int_equal(reading.head.reserved_bytes, 1);
	fake.memory_result = 25; /* version mismatch */
	ask();
	assert_int_equal(reading.head.total_bytes, 81);
	assert_int_equal(reading.head.free_bytes, 21);
	assert_int_equal(reading.head.used_bytes, 60);
	assert_int_equal(reading.head.reserved_bytes, CUF_UNKNOWN);
	nvml.nvmlDeviceGetMemoryInfo = NULL;
	ask();
	assert_int_equal(reading.head.total_bytes, CUF_UNKNOWN);
	assert_int_equal(reading.head.stored_count, 2);
}

static void test_nvml__the_device_by_uuid_else_by_bus(void **state)
{
	ask();
	assert_string_equal(fake.asked_for, "GPU-ab000000-0000-0000-0000-000000000001");
	fake.mig = true; /* an instance has a UUID of its own; its bus is the whole device's */
	ask();
	assert_string_equal(fake.asked_for, "MIG-ab000000-0000-0000-0000-000000000001");
	assert_two();
	fake.handle_result = 6;
	ask();
	assert_int_equal(reading.head.failed, CUF_NVML_nvmlDeviceGetHandleByUUID);
	assert_int_equal(reading.head.result, 6);
	fake.handle_result = 0;
	memset(device.uuid, 0, sizeof device.uuid);
	ask();
	assert_string_equal(fake.asked_for, "0000:81:00.0");
	assert_two();
	memset(device.pci, 'x', sizeof device.pci); /* without an end */
	ask();
	assert_string_equal(fake.asked_for, "xxxxxxxxxxxxxxx");
}

static void test_nvml__a_process_in_two_lists_is_one(void **state)
{
	nvml.nvmlDeviceGetGraphicsRunningProcesses = graphics;
	nvml.nvmlDeviceGetMPSComputeRunningProcesses_v3 = refused; /* none the worse */
	ask();
	assert_int_equal(reading.head.failed, 0);
	assert_int_equal(reading.head.stored_count, 3);
	assert_int_equal(reading.head.reported_count, 3);
	assert_int_equal(reading.processes[0].pid, 50);
	assert_int_equal(reading.processes[0].flags, CUF_GPU_PROCESS_GRAPHICS);
	assert_int_equal(reading.processes[1].pid, 10);
	assert_int_equal(reading.processes[1].flags, CUF_GPU_PROCESS_GRAPHICS | CUF_GPU_PROCESS_COMPUTE);
	assert_int_equal(reading.processes[1].used_bytes, 100);
}

/* ---- refusals and nonsense ---- */

static void test_nvml__refusals_are_told_by_name(void **state)
{
	fake.list_result = 4;
	ask();
	assert_int_equal(reading.head.failed, CUF_NVML_nvmlDeviceGetComputeRunningProcesses_v3);
	assert_int_equal(reading.head.result, 4);
	assert_int_equal(reading.head.stored_count, 0);
	fake.init_result = 9;
	ask();
	assert_int_equal(reading.head.failed, CUF_NVML_nvmlInit_v2);
	assert_int_equal(reading.head.result, 9);
	assert_int_equal(fake.initialised, 0); /* what was not opened is not closed */
}

static void test_nvml__more_than_there_is_room_for(void **state)
{
	fake.count = 0;
	fake.said_count = 5000;
	fake.list_result = CUF_NVML_INSUFFICIENT_SIZE;
	ask();
	assert_int_equal(reading.head.result, CUF_NVML_INSUFFICIENT_SIZE);
	assert_int_equal(reading.head.reported_count, 5000);
	assert_int_equal(reading.head.stored_count, 0);
	fake.count = CUF_GPU_PROCESSES_MAX;
	fake.said_count = CUF_GPU_PROCESSES_MAX;
	fake.list_result = 0;
	for (unsigned i = 0; i < CUF_GPU_PROCESSES_MAX; i++)
		fake.records[i] = (struct cuf_nvml_process_long){ { 1000 + i, 0, i }, 0, 0, 0 };
	nvml.nvmlDeviceGetGraphicsRunningProcesses = graphics;
	ask();
	assert_int_equal(reading.head.stored_count, CUF_GPU_PROCESSES_MAX);
	assert_int_equal(reading.head.reported_count, CUF_GPU_PROCESSES_MAX + 2);
}

static void test_nvml__lengths_and_counts_that_cannot_be(void **state)
{
	static const struct { unsigned count, said; size_t record, written; } odd[] = {
		{ 2, 2, 8, 8 },        /* shorter than any */
		{ 2, 2, 40, 40 },      /* longer than any */
		{ 2, 4000000000u, 24, 24 }, /* more than was asked for */
		{ 0, 2, 24, 24 },      /* said, not written */
	};
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		fake.count = odd[i].count;
		fake.said_count = odd[i].said;
		fake.record_bytes = odd[i].record;
		fake.written_bytes = odd[i].written < sizeof *fake.records ? odd[i].written : sizeof *fake.records;
		ask();
		assert_int_equal(reading.head.flags, CUF_GPU_PROCESSES_LAYOUT);
		assert_int_equal(reading.head.stored_count, 0);
	}
	fake.said_count = 0;
	ask();
	assert_int_equal(reading.head.flags | reading.head.failed | reading.head.stored_count, 0);
}

static void *find_nothing(const void *where, const char *name) { return NULL; }
static void *find_all(const void *where, const char *name) { return strcmp(name, where) ? (void *)init : NULL; }

static void test_nvml__a_library_that_lacks_the_first_functions_is_none(void **state)
{
	assert_false(reader.bind(&nvml, find_nothing, ""));
	assert_true(reader.bind(&nvml, find_all, ""));
	assert_true(reader.bind(&nvml, find_all, "nvmlDeviceGetHandleByUUID"));
	assert_false(reader.bind(&nvml, find_all, "nvmlShutdown"));
}

static int nvml_cases_run(struct nvml_reader tested)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_nvml__records_of_every_length, before_each),
		cmocka_unit_test_setup(test_nvml__the_newest_name_that_there_is, before_each),
		cmocka_unit_test_setup(test_nvml__memory_of_either_version, before_each),
		cmocka_unit_test_setup(test_nvml__the_device_by_uuid_else_by_bus, before_each),
		cmocka_unit_test_setup(test_nvml__a_process_in_two_lists_is_one, before_each),
		cmocka_unit_test_setup(test_nvml__refusals_are_told_by_name, before_each),
		cmocka_unit_test_setup(test_nvml__more_than_there_is_room_for, before_each),
		cmocka_unit_test_setup(test_nvml__lengths_and_counts_that_cannot_be, before_each),
		cmocka_unit_test_setup(test_nvml__a_library_that_lacks_the_first_functions_is_none, before_each),
	};
	reader = tested;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
