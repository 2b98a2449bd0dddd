/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks each test case of Catch2 (2 and 3) as a phase of the recording. Include it in one source
 * file of the test program; with Catch2 2, in the one that defines CATCH_CONFIG_MAIN. Then
 * `cuflight phases` lists what each test case needed. Without the recorder it does nothing.
 */
#pragma once

#include <cuflight.h>
#if __has_include(<catch2/reporters/catch_reporter_event_listener.hpp>)
#include <catch2/catch_test_case_info.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
namespace cuflight { using catch2_base = ::Catch::EventListenerBase; }
#else
#ifndef CATCH_CONFIG_EXTERNAL_INTERFACES
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#endif
#include <catch2/catch.hpp>
namespace cuflight { using catch2_base = ::Catch::TestEventListenerBase; }
#endif

namespace cuflight {

class catch2_listener : public catch2_base {
public:
	using catch2_base::catch2_base;

	void testCaseStarting(::Catch::TestCaseInfo const &test) override
	{
		phase_ = cuflight_phase_start(test.name.c_str());
	}
	void testCaseEnded(::Catch::TestCaseStats const &) override { cuflight_phase_end(phase_); }

private:
	uint64_t phase_ = 0;
};

CATCH_REGISTER_LISTENER(catch2_listener)

}
