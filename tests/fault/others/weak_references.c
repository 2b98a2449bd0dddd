/* SPDX-License-Identifier: Apache-2.0 */
/* A program that asks by weak references whether optional libraries are there, in its code and in a
 * table of constants. */
#include <stddef.h>
#include <stdio.h>

#define WEAK __attribute__((weak))
extern int cudaMalloc(void **, size_t) WEAK;
extern int cuInit(unsigned int) WEAK;
extern int ncclCommInitAll(void **, int, const int *) WEAK;
extern void *ggml_backend_buft_alloc_buffer(void *, size_t) WEAK;
extern int cublasCreate_v2(void **) WEAK;
extern void free_sized(void *, size_t) WEAK;
extern void *malloc(size_t) WEAK;
extern int cuflight_1_active(void) WEAK;

void *const table[] = { (void *)cudaMalloc, (void *)cuInit, (void *)malloc };

int main(void)
{
	void *block = NULL;

	printf("cudart %d driver %d nccl %d ggml %d cublas %d free_sized %d malloc %d\n", !!cudaMalloc,
	       !!cuInit, !!ncclCommInitAll, !!ggml_backend_buft_alloc_buffer, !!cublasCreate_v2,
	       !!free_sized, !!malloc);
	printf("table: %d %d %d\n", !!table[0], !!table[1], !!table[2]);
	fprintf(stderr, cuflight_1_active ? "recorded\n" : "");
	return cudaMalloc ? cudaMalloc(&block, 100) : 0;
}
