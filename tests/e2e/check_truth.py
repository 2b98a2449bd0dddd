#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_truth.py TRUTH REPORT [REPORT...]: do the JSON reports say what the victim said of itself?

TRUTH is what the victim printed (vocabulary: tests/victims/README.md), the first REPORT what `cuflight report
--format=json` says of the whole run, the others what it says of one process each. Prints a line for each disagreement
and exits 1; nothing and 0 when all agree. Knows no numbers of its own, but rules that hold for every report: the
owners of a device sum to it, none is negative, no event was lost.
"""
import json
import sys


FULL = 1 << 62  # a request that only the pool of large blocks could serve


def pairs(words):
    """name value name value ... -> dict; numbers become int"""
    return {n: int(v) if v.lstrip("-").isdigit() else v for n, v in zip(words[::2], words[1::2])}


class Check:
    def __init__(self, report, single):
        self.whole = self.report = report
        self.single = {r["capture"]["pid"]: r for r in single}
        self.pid = report["capture"]["pid"]
        self.wrong = []
        self.compared = 0
        self.incidents_seen = 0

    def same(self, what, said, found):
        self.compared += 1
        if said != found:
            self.wrong.append(f"{what}: the victim says {said}, the report {found}")

    def holds(self, what, condition):
        self.compared += 1
        if not condition:
            self.wrong.append(what)

    # one method for each subject of the vocabulary

    def door(self, words):
        pass

    def process(self, words):
        """what follows is this process's own end, which in the report of the whole run is only one moment of many"""
        self.pid = int(words[1])
        self.incidents_seen = 0
        self.holds(f"process {self.pid} is missing in the report of the run", self.pid in [p["pid"] for p in self.whole["processes"]])
        self.holds(f"process {self.pid} has no recording", self.pid in self.single)
        self.report = self.single.get(self.pid, self.whole)

    def run(self, words):
        """several processes as one"""
        for name, value in pairs(words).items():
            self.same(f"run {name}", value, self.whole["run"][name])

    def rows(self, kind, on=None):
        devices = [d for d in self.report["devices"] if on in (None, d["id"])]
        return [r for d in devices for r in d["owners"] if r["kind"] == kind and r["pid"] in (self.pid, None)]

    def live(self, words):
        said = pairs(words)
        if said["kind"] in ("pinned", "registered"):  # no owner of device memory: the live blocks by site
            rows = [l for l in self.report["leaks"] if l["kind"] == said["kind"] and l["pid"] == self.pid]
        else:
            rows = self.rows(said["kind"], said.get("on"))
        self.same(f"live {said['kind']} bytes", said["bytes"], sum(r["bytes"] or 0 for r in rows))
        self.same(f"live {said['kind']} blocks", said["count"], sum(r["count"] or 0 for r in rows))

    def peak(self, words):
        if words[0] == "site":
            self.peak_of_site(pairs(words))
            return
        self.same("peak of the device", int(words[1]), self.report["devices"][0]["peak_bytes"])

    def owner(self, words):
        said = pairs(words)
        self.same(f"owner {said['kind']}", said["bytes"], sum(r["bytes"] or 0 for r in self.rows(said["kind"])))

    def role(self, words):
        have = sum(row["bytes"] or 0 for device in self.report["devices"] for row in device["owners"] if row["role"] == words[0])
        self.same(f"role {words[0]}", pairs(words[1:])["bytes"], have)

    def device(self, words):
        said = pairs(words)
        found = next((d for d in self.report["devices"] if d["id"] == said["index"]), {})
        self.same("device total", said["total"], found.get("total_bytes"))
        self.same("device free", said["free"], found.get("free_bytes"))

    def others(self):
        return [r for r in self.report["devices"][0]["owners"] if r["kind"] == "other_processes" and r["source"] == "nvml"]

    def tenant(self, words):
        """another process on the device, as NVML said"""
        said = pairs(words)
        self.same(f"tenant {said['pid']}", [said["bytes"]], [r["bytes"] for r in self.others() if r["pid"] == said["pid"]])

    def peak_of_site(self, said):
        """of a report with --at=peak"""
        fits = [l for l in self.report["leaks"] if said["site"] in functions(l["stack"])]
        self.same(f"call sites of {said['site']} at the peak", 1, len(fits))
        for site in fits[:1]:
            for key in ("bytes", "count"):
                self.agrees(f"{said['site']} at the peak: {key}", said[key], site[key], site)

    def tenants(self, words):
        said, told = pairs(words), [r["bytes"] for r in self.others() if r["bytes"] is not None]
        self.same("tenants", (said["told"], said["untold"], said["bytes"]), (len(told), len(self.others()) - len(told), sum(told)))
        unexplained = sum(r["bytes"] or 0 for r in self.rows("unexplained"))
        self.holds(f"{unexplained} bytes are unexplained, though NVML tells of everybody", said["untold"] or not unexplained)

    def grows(self, words):
        """sampled host memory whose requests are not marked"""
        self.leak(words, "growing")

    def leak(self, words, verdict="leak"):
        said = pairs(words)
        fits = [l for l in self.report["leaks"] if l["class"] == verdict and said["site"] in functions(l["stack"])]
        self.same(f"{verdict} at {said['site']}", 1, len(fits))
        for leak in fits[:1]:
            for key, field in (("bytes", "bytes"), ("count", "count"), ("kind", "kind"), ("per_request", "per_request_bytes")):
                key in said and self.agrees(f"leak at {said['site']}: {key}", said[key], leak[field], leak)
        strangers = [functions(l["stack"])[:3] for l in self.report["leaks"] if l["class"] in ("leak", "growing") and l not in fits]
        self.holds(f"also called leaks: {strangers}", not strangers)

    def agrees(self, what, said, found, row):
        """the same, or for a sampled figure within twice its 95 % interval: a right one fails once in ten thousand runs"""
        if row["basis"] != "estimated" or not isinstance(said, int):
            self.same(what, said, found)
            return
        low, high = (edge / row["bytes"] for edge in row["bytes_interval"])
        self.holds(f"{what}: the victim says {said}, the report {found} ({row['bytes_interval']})",
                   found * (1 - 2 * (1 - low)) <= said <= found * (1 + 2 * (high - 1)))

    def host(self, words):
        """host memory beyond malloc's live blocks"""
        host, (what, said) = self.report["host"], words[:2]
        if what == "verdict":
            self.same("verdict on the heap", said, host["verdict"])
        elif what == "pin":
            self.holds(f"no pages held open by {said}: {[functions(p['stack']) for p in host['pins']]}",
                       host["pins"] and said in functions(host["pins"][0]["stack"]))
        elif what == "fragmented_least":
            self.holds(f"fragmented: {host['allocator']['fragmented_bytes']}, expected {said} at least", host["allocator"]["fragmented_bytes"] >= int(said))
        elif what == "allocator":
            self.same("allocator", said, host["allocator"]["name"])
        elif what == "maps":
            said = pairs(words[1:])
            for key, value in said.items():
                self.same(f"maps: {key}", value, (host["maps"] or {}).get(key))
        else:
            self.holds(f"no such word of host memory: {what}", False)
        self.same("resident memory in parts", host["rss_bytes"], sum(r["bytes"] for r in host["resident"]))

    def clean(self, words):
        if words[0] == "leaks":
            found = [functions(l["stack"])[:3] for l in self.report["leaks"] if l["class"] == "leak"]
        elif words[0] != "incidents":
            found = "no such word"
        else:
            found = [(i["api"], i["requested_bytes"]) for i in self.report["incidents"] if i["pid"] == self.pid]
        self.holds(f"no {words[0]} expected, found {found}", not found)

    def incident(self, words):
        said = pairs(words)
        own = [i for i in self.report["incidents"] if i["pid"] == self.pid]
        self.incidents_seen += 1
        if len(own) < self.incidents_seen:
            self.holds(f"incident {self.incidents_seen} is missing", False)
            return
        found = own[self.incidents_seen - 1]
        for key, field in (("api", "api"), ("requested", "requested_bytes"), ("outcome", "outcome"), ("free", "free_bytes"), ("total", "total_bytes")):
            self.same(f"incident {key}", said[key], found[field])
        self.same("incident attempts", said["attempts"], len(found["attempts"]))
        self.same("incident fatal", said["outcome"] == "fatal", found["fatal"])
        self.holds(f"incident stack lacks {said['site']}: {functions(found['stack'])}", said["site"] in functions(found["stack"]))

    def own_process(self):
        return next(p for p in self.report["processes"] if p["pid"] == self.pid)

    def phase(self, words):
        """all phases, requests or marks of one name; blanks of names are underscores here"""
        said = pairs(words[1:])
        fits = [g for g in self.own_process()["requests"]["phases"] if g["name"].replace(" ", "_") == words[0] and g["sort"] == said["sort"]]
        self.same(f"phases {words[0]}", 1, len(fits))
        for group in fits[:1]:
            for key in said:
                self.same(f"phase {words[0]}: {key}", said[key], group[key])
        single = [f for f in self.report["phases"] if f["name"].replace(" ", "_") == words[0] and f["sort"] == said["sort"] and f["pid"] == self.pid]
        self.same(f"phases {words[0]} one by one", said["count"], len(single))
        self.same(f"phases {words[0]} without an end", said["open"], sum(f["end_ns"] is None for f in single))

    def nested(self, words):
        """every phase of the first name lies in one of the last, in its thread, one deeper"""
        inner, outer = ([f for f in self.report["phases"] if f["name"].replace(" ", "_") == name and f["pid"] == self.pid] for name in (words[0], words[2]))
        self.holds(f"no {words[0]} or no {words[2]}", inner and outer)
        for f in inner:
            self.holds(f"{words[0]} lies in no {words[2]}", any(
                o["tid"] == f["tid"] and o["depth"] == f["depth"] - 1 and o["begin_ns"] <= f["begin_ns"] and f["end_ns"] <= (o["end_ns"] or f["end_ns"])
                and o["start_bytes"] <= f["start_bytes"] and f["peak_bytes"] <= o["peak_bytes"] for o in outer))

    def requests(self, words):
        for key, value in pairs(words).items():
            self.same(f"requests: {key}", value, self.own_process()["requests"][key])

    def within(self, words):
        """the last incident: its phase and the request it was made for"""
        said, found = pairs(words), self.report["incidents"][-1]
        for key, field in (("phase", "phase"), ("request", "request"), ("id", "request_id")):
            key in said and self.same(f"incident within: {key}", said[key], found[field])

    def last_state(self):
        return self.report["incidents"][-1] if self.report["incidents"] else self.report["devices"][0]

    def hole(self, words):
        said = pairs(words)
        key = {"page": "page_hole_bytes", "pool": "pool_bytes", "vmm": "vmm_bytes"}[said["layer"]]
        self.same(f"largest {said['layer']} hole", said["bytes"], (self.last_state()["largest_free"] or {}).get(key))

    def fits_if_packed(self, words):
        self.same("fits_if_packed", words[0] == "true", self.report["incidents"][-1]["fits_if_packed"])

    def pool(self, words):
        said = pairs(words)
        pools = [p for p in self.report["devices"][0]["fragmentation"]["pools"] if p["reserved_bytes"]]
        self.same("pools in use", 1, len(pools))
        for pool in pools[:1]:
            self.same("pool reserved", said["reserved"], pool["reserved_bytes"])
            self.same("pool used", said["used"], pool["used_bytes"])

    # a framework's allocator: its own books

    def framework(self):
        return next((f for d in self.report["devices"][:1] for f in d["fragmentation"]["frameworks"] if f["allocated_bytes"] is not None), {})

    def books(self, words, request_bytes):
        """what it had at the moment of the report: totals, slack, and the largest hole of the pool that would serve the request"""
        said = pairs(words)
        self.same("framework allocated", said["allocated"], self.framework().get("allocated_bytes"))
        self.same("framework placed", said["allocated"], self.framework().get("placed_bytes"))
        self.same("framework reserved", said["reserved"], self.framework().get("reserved_bytes"))
        self.same("framework slack", said["slack"], sum(r["bytes"] or 0 for r in self.rows("framework_slack")))
        hole = said["hole_small" if request_bytes <= 1 << 20 else "hole_large"]
        self.same("largest hole in a segment", hole, self.framework().get("largest_hole_bytes"))
        self.same("largest hole is exact", "exact", self.framework().get("largest_hole_basis"))

    def point(self, words):
        """every point but the report's own moment: tests/fault/framework_points.c"""

    def reported(self, words):
        """of the events: torch_allocator.tap"""

    def oom(self, words):
        last = self.report["incidents"][-1]
        self.same("outcome", "fatal", last["outcome"])
        self.books(words, last["framework_requested_bytes"] or 0)
        self.same("segments' hole at the incident", self.framework().get("largest_hole_bytes"), last["largest_free"]["segment_bytes"])
        self.same("allocated at the incident", pairs(words)["allocated"], last["framework_allocated_bytes"])

    def refused(self, words):
        said, last = pairs(words), self.report["incidents"][-1]
        self.same("refused bytes", said["requested"], last["framework_requested_bytes"])
        self.same("free when refused", said["free"], last["free_bytes"])
        self.same("total when refused", said["total"], last["total_bytes"])
        packed = said["free"] // (2 << 20) * (2 << 20) + sum(r["bytes"] or 0 for r in self.rows("framework_slack"))
        self.same("fits_if_packed", packed >= said["requested"], last["fits_if_packed"])

    def pinned(self, words):
        said = pairs(words)
        found = [s for d in self.report["devices"] for s in d["fragmentation"]["segments"] if s["address"] == hex(said["segment"])]
        self.same("pinned segment", [(said["bytes"], said["live"], said["count"])], [(s["bytes"], s["live_bytes"], s["live_count"]) for s in found])

    def retried(self, words):
        if "requested" in words:
            said, last = pairs(words), self.report["incidents"][-1]
            self.same("retried: incidents", said["retries"], len(self.report["incidents"]))
            self.same("retried: outcome", "recovered", last["outcome"])
            self.holds(f"retried: {last['requested_bytes']} holds {said['requested']}", last["requested_bytes"] >= said["requested"])
        else:
            self.books(words, FULL)

    def vmm(self, words):
        self.same("vmm mapped", int(words[1]), self.report["devices"][0]["fragmentation"]["vmm_mapped_bytes"])

    def end(self, words):
        found = next(p for p in self.report["processes"] if p["pid"] == self.pid)
        said = words[1:]
        self.same("end", said, [found["end_state"]] + ([str(found["end_status"])] if len(said) > 1 else []))

    def rules(self):
        self.pid = self.report["capture"]["pid"]
        self.same("events lost", 0, self.report["capture"]["events_lost"])
        for device in self.report["devices"]:
            rows = [r for r in device["owners"] if r["in_sum"]]
            self.same(f"sum of the owners of device {device['id']}", device["total_bytes"], sum(r["bytes"] or 0 for r in rows))
            for row in device["owners"]:
                self.holds(f"owner {row['kind']} is negative: {row['bytes']}", row["bytes"] is None or row["bytes"] >= 0)


def functions(stack):
    return [f["function"] for f in stack]


def main():
    with open(sys.argv[1], encoding="utf-8") as truth:
        lines = [line.split() for line in truth if line.strip()]
    reports = []
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            reports.append(json.load(file))
    check = Check(reports[0], reports[1:])
    for subject, *words in lines:
        method = getattr(Check, subject, None) if subject not in ("same", "holds", "agrees", "rules", "rows", "others", "last_state", "own_process") else None
        if method:
            method(check, words)
        else:
            check.holds(f"no such subject in the vocabulary: {subject}", False)
    check.holds("the victim told no end: it broke before", any(line[0] == "end" for line in lines))
    for check.report in reports:
        check.rules()
    print("\n".join(check.wrong), end="\n" if check.wrong else "")
    return 1 if check.wrong else 0


sys.exit(main())
