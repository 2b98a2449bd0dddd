/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks each test of GoogleTest (1.10 and newer) as a phase of the recording. Include it in one
 * source file of the test program. Then `cuflight phases` lists what each test needed, and
 * `cuflight check RECORDING 'device.peak@Suite.Test <= 2GiB'` limits it. Without the recorder it
 * does nothing.
 */
#pragma once

#include <cuflight.h>
#include <gtest/gtest.h>
#include <string>

namespace cuflight {

class gtest_listener : public ::testing::EmptyTestEventListener {
	void OnTestStart(const ::testing::TestInfo &test) override
	{
		std::string name = std::string(test.test_suite_name()) + "." + test.name();
		phase_ = cuflight_phase_start(name.c_str());
	}
	void OnTestEnd(const ::testing::TestInfo &) override { cuflight_phase_end(phase_); }

	uint64_t phase_ = 0;
};

namespace {
const bool gtest_is_marked = [] {
	/* GoogleTest owns and deletes the listener */
	::testing::UnitTest::GetInstance()->listeners().Append(new gtest_listener);
	return true;
}();
}

}
