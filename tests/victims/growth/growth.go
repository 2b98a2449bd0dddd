// SPDX-License-Identifier: Apache-2.0

// growth_go NAME [SECONDS]: one program of programs.txt; a leak keeps 20 MB a second.
package main

// #include <stdlib.h>
import "C"

import (
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

const block, each = 2000, 100

var text = strings.Repeat("t", block)

func serve(seconds float64, request func()) {
	for left := int(seconds * 80); left > 0; left-- {
		for i := 0; i < each; i++ {
			request()
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func main() {
	seconds := 8.0
	if len(os.Args) > 2 {
		seconds, _ = strconv.ParseFloat(os.Args[2], 64)
	}
	switch os.Args[1] {
	case "c_strings_not_freed":
		serve(seconds, func() { C.CString(text) })
	case "c_strings_freed":
		kept := make([]*C.char, 10000)
		next := 0
		serve(seconds, func() {
			C.free(unsafe.Pointer(kept[next]))
			kept[next] = C.CString(text)
			next = (next + 1) % len(kept)
		})
	default:
		os.Exit(2)
	}
}
