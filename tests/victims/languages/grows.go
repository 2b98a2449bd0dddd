// SPDX-License-Identifier: Apache-2.0
// grows WHAT KEEP CREATE: creates so many MiB, of the heap, by C.malloc or in a C function, and
// keeps the last KEEP MiB. Prints "heap BYTES" as Go counts it and "held BYTES" of C, every MiB.
package main

/*
#include <stdlib.h>
#include <string.h>
static void *keep_in_c(size_t bytes)
{
	return memset(malloc(bytes), 1, bytes);
}
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
	"unsafe"
)

var sessions [][]byte
var held []unsafe.Pointer

func remember(what string, keep int) {
	switch what {
	case "heap":
		entry := make([]byte, 1<<20)
		for i := 0; i < len(entry); i += 512 {
			entry[i] = 1
		}
		sessions = append(sessions, entry)
		if len(sessions) > keep {
			sessions[0] = nil
			sessions = sessions[1:]
		}
	case "malloc":
		pointer := C.malloc(1 << 20)
		C.memset(pointer, 1, 1<<20)
		held = append(held, pointer)
	default:
		held = append(held, C.keep_in_c(1<<20))
	}
}

func main() {
	keep, _ := strconv.Atoi(os.Args[2])
	create, _ := strconv.Atoi(os.Args[3])
	for n := 0; n < create; n++ {
		remember(os.Args[1], keep)
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		fmt.Printf("heap %d\nheld %d\n", stats.HeapSys-stats.HeapReleased, len(held)<<20)
		time.Sleep(2 * time.Millisecond)
	}
}
