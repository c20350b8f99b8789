"""usage, report and grants: what is asked, what is shown."""
import json

from fake import Case, Refused, main


def row(**more):
    r = {"user": "ann", "queue": "vis", "flavor": "a100", "gpu_seconds": 7200,
         "refunded_gpu_seconds": 360.5, "share": 0.25, "pods": 3, "cost": 12.5,
         "currency": "EUR",
         "wasted_gpu_seconds": {"evicted": 360.5, "starting": 36, "held": 0, "stranded": 3600, "fragmented": 0}}
    r.update(more)
    return r


def rows(*items):
    def handler(call):
        for i in items:
            call.item(i)
        return None
    return handler


class Report(Case):
    def table(self, *args):
        return [line.split() for line in self.ok("report", *args).splitlines()]

    def test_hours_shares_and_money(self):
        self.serve(report_get=rows(row(), row(user="bob", cost=None, currency=None)))
        lines = self.table()
        self.assertEqual(lines[0], ["USER", "QUEUE", "FLAVOR", "GPU_HOURS", "SHARE", "REFUNDED",
                                    "WASTE", "PODS", "COST"])
        self.assertEqual(lines[1], ["ann", "vis", "a100", "2.00", "25.0%", "0.10", "1.11", "3",
                                    "12.50", "EUR"])
        self.assertEqual(lines[2][-1], "-")

    def test_columns_follow_by(self):
        s = self.serve(report_get=rows(row(user=None, flavor=None, day="2026-11-21")))
        self.assertEqual(self.table("--by", "day,queue", "-h")[0][:3],
                         ["vis", "2026-11-21", "2.00"])
        self.assertEqual(s.of("report.get")[0].params, {"by": ["day", "queue"]})
        code, _, err = self.run_gpuq("report", "--by", "day,week")
        self.assertEqual(code, 2)
        self.assertIn("--by week: expected user, queue, flavor, isolation or day", err)

    def test_what_is_asked(self):
        s = self.serve(report_get=rows())
        self.ok("report", "--since", "2026-11-01T00:00Z", "--until", "2026-12-01T00:00Z",
                "-q", "a,b", "--me")
        self.assertEqual(s.of("report.get")[0].params,
                         {"since_us": 1793491200000000, "until_us": 1796083200000000,
                          "queues": ["a", "b"], "users": ["ann"]})

    def test_json_as_it_comes(self):
        self.serve(report_get=rows(row()))
        got = json.loads(self.ok("report", "--json"))
        self.assertEqual((got["v"], got["gpu_seconds"], got["wasted_gpu_seconds"]["stranded"]),
                         (1, 7200, 3600))

    def test_a_wrong_time_is_wrong_usage(self):
        self.serve(report_get=rows())
        code, _, err = self.run_gpuq("report", "--until", "never")
        self.assertEqual(code, 2)
        self.assertIn("--until never: expected an instant", err)


class Usage(Case):
    def test_queues_and_users(self):
        queue = {"queue": "vis", "user": None, "budget_gpu_minutes": 600,
                 "granted_gpu_minutes": 0, "used_gpu_minutes": 700.5,
                 "committed_gpu_minutes": None, "left_gpu_minutes": -100.5, "mode": "soft",
                 "decayed_gpu_seconds": 5400.0, "factor": None}
        user = dict(queue, user="ann", budget_gpu_minutes=None, left_gpu_minutes=None,
                    mode=None, factor=0.5)
        s = self.serve(usage_list=rows(queue, user))
        lines = [l.split() for l in self.ok("usage", "vis", "-u", "ann,bob").splitlines()]
        self.assertEqual(lines[1], ["vis", "-", "600", "700.50", "-", "-100.50", "soft", "1.50",
                                    "-", "-"])
        self.assertEqual(lines[2], ["vis", "ann", "-", "700.50", "-", "-", "-", "1.50",
                                    "0.500000", "-"])
        self.assertEqual(s.of("usage.list")[0].params, {"names": ["vis"],
                                                        "users": ["ann", "bob"]})


class Grant(Case):
    def test_it_is_sent_once_and_told(self):
        s = self.serve(queue_grant=lambda call: {"queue": "vis", "budget_gpu_minutes": 600,
                                                 "granted_gpu_minutes": 300,
                                                 "used_gpu_minutes": 12.25})
        self.assertEqual(self.ok("queues", "grant", "vis", "300", "--reason", "paper"),
                         "vis: budget 600, granted 300, used 12.25 GPU-minutes\n")
        self.assertEqual(s.of("queue.grant")[0].params,
                         {"name": "vis", "gpu_minutes": 300, "why": "paper"})

    def test_wrong_numbers(self):
        self.serve(queue_grant=lambda call: {})
        for args in (["vis"], ["vis", "0"], ["vis", "1h"], ["vis", "9999999999"]):
            self.assertEqual(self.run_gpuq("queues", "grant", *args)[0], 2, args)

    def test_a_refusal_is_told(self):
        def refuse(call):
            raise Refused(4, "denied", "only an operator may")
        self.serve(queue_grant=refuse)
        code, _, err = self.run_gpuq("queues", "grant", "vis", "5")
        self.assertEqual(code, 1)
        self.assertIn("only an operator may", err)


if __name__ == "__main__":
    main()
