"""gpuq import kueue: manifests as people write them, and what is said of the rest."""
import os
import re
import tempfile

from fake import Case, main

FLAVORS = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: any}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: h100}
spec:
  nodeLabels: {example.com/gpu: h100}
---
"""

TEAM = FLAVORS + """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team}
spec:
  cohortName: org
  namespaceSelector: {}
  queueingStrategy: BestEffortFIFO
  resourceGroups:
  - coveredResources: ["nvidia.com/gpu"]
    flavors:
    - name: h100
      resources: [{name: nvidia.com/gpu, nominalQuota: 8, borrowingLimit: 4, lendingLimit: 2}]
    - name: any
      resources: [{name: nvidia.com/gpu, nominalQuota: "2"}]
  preemption: {withinClusterQueue: LowerOrNewerEqualPriority, reclaimWithinCohort: LowerPriority}
  fairSharing: {weight: "2.5"}
---
"""


DWS = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: default-flavor}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: AdmissionCheck
metadata: {name: dws-prov}
spec:
  controllerName: kueue.x-k8s.io/provisioning-request
  parameters: {apiGroup: kueue.x-k8s.io, kind: ProvisioningRequestConfig, name: dws-config}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ProvisioningRequestConfig
metadata: {name: dws-config}
spec:
  provisioningClassName: queued-provisioning.gke.io
  managedResources: [nvidia.com/gpu]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: dws}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu]
    flavors:
    - name: default-flavor
      resources: [{name: cpu, nominalQuota: 10000}, {name: memory, nominalQuota: 10000Gi},
                  {name: nvidia.com/gpu, nominalQuota: 10000}]
  admissionChecks: [dws-prov]
"""

SHAPES = """
pools:
- name: dws-t4
  selector: {pool: t4}
  flavor: t4
  provisioning: {machine: {gpus: 1, labels: {zone: a}}, max_nodes: 2}
"""


class Import(Case):
    def convert(self, text, notes=0, *more):
        code, out, err = self.run_gpuq("import", "kueue", *more, "-", input=text)
        self.assertEqual(code, 0, err)
        lines = err.splitlines()
        self.assertEqual(len(lines), notes + (notes > 0), err)
        return out, lines

    def shapes(self, text):
        f = tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False)
        self.addCleanup(os.unlink, f.name)
        with f:
            f.write(text)
        return f.name

    def refused(self, text, *words, more=()):
        code, out, err = self.run_gpuq("import", "kueue", *more, "-", input=text)
        self.assertEqual((code, out), (1, ""), err)
        for w in words:
            self.assertIn(w, err)

    def test_a_cluster_queue(self):
        out, _ = self.convert(TEAM)
        self.assertEqual(out, """version: 1
flavors:
  - name: h100
pools:
  - name: h100
    selector:
      example.com/gpu: h100
    flavor: h100
queues:
  - name: org
    limit:
      h100: 8
      default: 2
  - name: team
    parent: org
    quota:
      h100: 8
      default: 2
    limit:
      h100: 12
    lend:
      h100: 2
    flavors:
      - h100
      - default
    weight: 2.5
    reclaim: lower
    preempt: lower_or_newer
""")

    def test_one_without_a_cohort_cannot_borrow(self):
        out, _ = self.convert(TEAM.replace("cohortName: org", "{}").replace("  {}\n", "")
                              .replace(", borrowingLimit: 4", "").replace(", lendingLimit: 2", ""))
        self.assertIn("    limit:\n      h100: 8\n      default: 2\n", out)

    def test_defaults_of_kueue_are_written_out(self):
        out, _ = self.convert("apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\n"
                              "metadata: {name: q}\nspec: {cohort: c, stopPolicy: Hold}\n")
        self.assertIn("  - name: q\n    parent: c\n    stopped: true\n    reclaim: never\n"
                      "    preempt: never\n", out)

    def test_cohorts_bring_their_own_quota_on_top(self):
        out, _ = self.convert(TEAM + """
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {name: org}
spec:
  parentName: root
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: h100, resources: [{name: nvidia.com/gpu, nominalQuota: 3}]}]
""")
        self.assertIn("  - name: org\n    parent: root\n    shared_quota:\n      h100: 3\n", out)
        self.assertIn("  - name: root\n    limit:\n      h100: 11\n      default: 2\n", out)

    def test_borrowing_by_priority(self):
        with_policy = lambda p: TEAM.replace("reclaimWithinCohort: LowerPriority",
                                             "reclaimWithinCohort: Any, borrowWithinCohort: " + p)
        for policy, most in (("{policy: LowerPriority, maxPriorityThreshold: 100}", "100"),
                             ("{policy: LowerPriority, maxPriorityThreshold: -5}", "-5"),
                             ("{policy: LowerPriority, maxPriorityThreshold: 2000001000}",
                              "1000000000"),
                             ("{policy: LowerPriority}", "1000000000")):
            out, _ = self.convert(with_policy(policy))
            self.assertIn("    borrow_preempt_max_priority: %s\n" % most, out)
        out, _ = self.convert(with_policy("{policy: Never, maxPriorityThreshold: 7}"))
        self.assertNotIn("borrow_preempt", out)
        self.refused(with_policy("{policy: Always}"), "borrowWithinCohort.policy", "not a value of Kueue")
        self.refused(with_policy("{policy: LowerPriority, maxPriorityThreshold: much}"),
                     "maxPriorityThreshold", "whole number")

    def test_local_queues_keep_the_names_that_jobs_carry(self):
        local = ("---\napiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\n"
                 "metadata: {name: %s, namespace: %s}\nspec: {clusterQueue: team}\n")
        out, _ = self.convert(TEAM + local % ("main", "ml"))
        self.assertIn("  - name: main\n    parent: team\n    namespace: ml\n"
                      "    reclaim: lower\n    preempt: lower_or_newer\n", out)
        out, notes = self.convert(TEAM + local % ("main", "ml") + local % ("main", "cv"), 3)
        self.assertIn("  - name: ml.main\n", out)
        self.assertIn("  - name: cv.main\n", out)
        self.assertIn("called ml.main", notes[0])
        self.assertIn("its LocalQueues are queues of their own", notes[2])
        out, notes = self.convert(TEAM + local % ("team", "ml"), 1)
        self.assertIn("  - name: cq-team\n", out)
        self.assertIn("  - name: team\n    parent: cq-team\n", out)

    def test_priority_classes_and_topology(self):
        out, _ = self.convert("""
apiVersion: kueue.x-k8s.io/v1beta1
kind: WorkloadPriorityClass
metadata: {name: prod}
value: 1000
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: Topology
metadata: {name: t}
spec: {levels: [{nodeLabel: block}, {nodeLabel: rack}]}
""")
        self.assertIn("topology:\n  - block\n  - rack\n", out)
        self.assertIn("qos:\n  - name: prod\n    priority: 1000\n", out)

    FLAVOR = """
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: fast}
spec:
  nodeLabels: {speed: fast}
  tolerations: [{key: dedicated, operator: Equal, value: ml, effect: NoSchedule}]
  topologyName: %s
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: Topology
metadata: {name: t}
spec: {levels: [{nodeLabel: rack}]}
"""

    def test_tolerations_and_topology_of_a_flavor(self):
        out, _ = self.convert(self.FLAVOR % "t")
        self.assertIn("    tolerations:\n      - key: dedicated\n        operator: Equal\n        value: ml\n"
                      "        effect: NoSchedule\n", out)
        _, notes = self.convert(self.FLAVOR % "other", 1)
        self.assertIn("the site has one topology, whose levels are those of t", notes[0])

    def test_tolerations_without_a_pool(self):
        _, notes = self.convert(self.FLAVOR.replace("  nodeLabels: {speed: fast}\n", "") % "t", 1)
        self.assertIn("spec.tolerations: they are those of a pool", notes[0])

    def test_a_list_of_kubectl(self):
        out, _ = self.convert("apiVersion: v1\nkind: List\nitems:\n"
                              "- {apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort,\n"
                              "   metadata: {name: c}, status: {x: 1}}\n")
        self.assertIn("queues:\n  - name: c\n", out)

    def test_says_what_has_no_counterpart(self):
        text = TEAM.replace("queueingStrategy: BestEffortFIFO", """queueingStrategy: StrictFIFO
  admissionChecks: [dws]
  flavorFungibility: {whenCanBorrow: TryNextFlavor, whenCanPreempt: TryNextFlavor}
  somethingNew: {x: 1}""")
        _, notes = self.convert(text, 4)
        for want in (r"ClusterQueue/team: spec.queueingStrategy: ",
                     r"ClusterQueue/team: spec.admissionChecks: ",
                     r"ClusterQueue/team: spec.flavorFungibility.whenCanBorrow: ",
                     r"ClusterQueue/team: spec.somethingNew: not known"):
            self.assertTrue(any(want in n for n in notes), (want, notes))
        self.assertRegex(notes[0], r"^gpuq: -:\d+:\d+: ")
        self.assertEqual(notes[-1], "gpuq: 4 fields without a counterpart, above")

    def test_other_resources_and_kinds(self):
        _, notes = self.convert(TEAM.replace('resources: [{name: nvidia.com/gpu, nominalQuota: "2"}]',
                                             "resources: [{name: cpu, nominalQuota: 9}]") +
                                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", 2)
        self.assertTrue(any("cpu: quotas count devices alone" in n for n in notes), notes)
        self.assertTrue(any("not an object of Kueue" in n for n in notes), notes)

    def test_flavors_without_labels_tell_no_nodes_apart(self):
        queue = ("---\napiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: dws}\nspec:\n"
                 "  resourceGroups:\n  - coveredResources: [cpu, memory, nvidia.com/gpu]\n    flavors:\n"
                 "    - name: default-flavor\n      resources:\n      - {name: cpu, nominalQuota: 10000}\n"
                 "      - {name: memory, nominalQuota: 10000Gi}\n      - {name: nvidia.com/gpu, nominalQuota: 10000}\n")
        flavor = "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ResourceFlavor\nmetadata: {name: %s}\n"
        out, notes = self.convert(flavor % "default-flavor" + queue, 1)
        self.assertEqual(out, "version: 1\nqueues:\n  - name: dws\n    quota: 10000\n    limit: 10000\n"
                              "    reclaim: never\n    preempt: never\n")
        self.assertIn("ClusterQueue/dws: spec.resourceGroups: cpu, memory: quotas count devices alone", notes[0])
        out, notes = self.convert(flavor % "default-flavor" + "---\n" + flavor % "more" + queue.replace(
            "metadata: {name: dws}\nspec:\n", "metadata: {name: dws}\nspec:\n  cohort: org\n") +
            "    - name: more\n      resources: [{name: nvidia.com/gpu, nominalQuota: 4, borrowingLimit: 2}]\n", 2)
        self.assertIn("  - name: org\n    limit: 10004\n  - name: dws\n    parent: org\n    quota: 10004\n"
                      "    limit: 10006\n    reclaim", out)
        self.assertIn("ResourceFlavor/more: spec.nodeLabels: none, as those of default-flavor", notes[0])

    def test_checks_that_have_nodes_provisioned(self):
        out, notes = self.convert(DWS, 1, "--pools", self.shapes(SHAPES))
        self.assertEqual(out, """version: 1
flavors:
  - name: t4
pools:
  - name: dws-t4
    selector:
      pool: t4
    flavor: t4
    provisioning:
      kind: request
      class: queued-provisioning.gke.io
      max_nodes: 2
      machine:
        gpus: 1
        labels:
          pool: t4
          zone: a
queues:
  - name: dws
    quota: 10000
    limit: 10000
    reclaim: never
    preempt: never
""")
        self.assertIn("cpu, memory: quotas count devices alone", notes[0])

    def test_their_parameters_and_retries(self):
        config = ("managedResources: [nvidia.com/gpu]\n  parameters: {maxRunDurationSeconds: '3600', other: x}\n"
                  "  retryStrategy: {backoffLimitCount: 2, backoffBaseSeconds: 30, backoffMaxSeconds: 900}\n"
                  "  podSetUpdates: {nodeSelector: [{key: zone, valueFromProvisioningClassDetail: Zone}]}")
        text = DWS.replace("managedResources: [nvidia.com/gpu]", config)
        out, _ = self.convert(text, 1, "--pools", self.shapes(SHAPES.replace("max_nodes: 2", "max_nodes: 2, retries: 5")))
        self.assertIn("      class: queued-provisioning.gke.io\n      max_run: 3600s\n      parameters:\n        other: x\n"
                      "      retries: 5\n      retry_base: 30s\n      retry_max: 900s\n      node_selector_from:\n"
                      "        zone: Zone\n", out)

    def test_without_shapes_the_keys_are_a_comment(self):
        out, _ = self.convert(DWS, 1)
        self.assertNotIn("\npools:", out)
        self.assertIn("# pools:\n#   - name: NAME\n#     selector: {LABEL: VALUE}\n#     flavor: NAME\n#     provisioning:\n"
                      "#       kind: request\n#       class: queued-provisioning.gke.io\n#       machine: {gpus: N", out)
        labels = DWS.replace("metadata: {name: default-flavor}", "metadata: {name: default-flavor}\nspec: {nodeLabels: {a: b}}")
        out, _ = self.convert(labels, 1)
        self.assertIn("    flavor: default-flavor\n    provisioning:\n      kind: none\n", out)
        self.assertIn("# pools:\n#   - name: default-flavor\n#     provisioning:\n#       kind: request\n", out)

    def test_a_flavor_with_labels_gets_its_shape_and_taints(self):
        labels = DWS.replace("metadata: {name: default-flavor}", "metadata: {name: default-flavor}\nspec:\n"
                             "  nodeLabels: {a: b}\n  nodeTaints: [{key: k, value: v, effect: NoSchedule}]")
        out, _ = self.convert(labels, 1, "--pools", self.shapes(
            "pools: [{name: default-flavor, price: 2, provisioning: {machine: {gpus: 8}, max_nodes: 4}}]"))
        self.assertIn("      machine:\n        gpus: 8\n        labels:\n          a: b\n        taints:\n"
                      "          - key: k\n            value: v\n            effect: NoSchedule\n", out)
        _, notes = self.convert(labels, 2)
        self.assertTrue(any("spec.nodeTaints" in n for n in notes), notes)

    def test_a_reservation_first_then_flavors_of_the_shapes(self):
        text = DWS.replace("---", "---\napiVersion: kueue.x-k8s.io/v1beta1\nkind: ResourceFlavor\nmetadata: {name: kept}\n"
                           "spec: {nodeLabels: {gke-nodepool: kept}}\n---", 1).replace(
            "    flavors:\n", "    flavors:\n    - name: kept\n      resources: [{name: nvidia.com/gpu, nominalQuota: 9}]\n").replace(
            "admissionChecks: [dws-prov]", "admissionChecksStrategy: {admissionChecks: [{name: dws-prov, onFlavors: [default-flavor]}]}")
        out, _ = self.convert(text, 1, "--pools", self.shapes(SHAPES))
        self.assertIn("    quota:\n      kept: 9\n      t4: 10000\n", out)
        self.assertIn("    flavors:\n      - kept\n      - t4\n", out)
        self.assertNotIn("none", out)

    def test_refusals_of_checks_and_shapes(self):
        self.refused(DWS.replace("name: dws-config}", "name: gone}", 1), "AdmissionCheck/dws-prov: spec.parameters",
                     "no ProvisioningRequestConfig is named gone")
        for shape, words in ((SHAPES.replace("gpus: 1, ", ""), "machine is missing"),
                             (SHAPES.replace(", max_nodes: 2", ""), "max_nodes is missing"),
                             (SHAPES.replace("max_nodes: 2", "max_nodes: 0"), "max_nodes: expected 1 at least"),
                             (SHAPES.replace("max_nodes: 2", "max_nodes: 2, foo: 2"), "unknown key 'foo'"),
                             (SHAPES.replace("gpus: 1, ", "gpus: 1, gpu: 1, "), "unknown key 'gpu'; did you mean 'gpus'?"),
                             ("queues: []", "expected pools"), ("pools: [7]", "expected a pool with a name")):
            self.refused(DWS, ":", words, more=("--pools", self.shapes(shape)))
        self.refused(DWS.replace("  admissionChecks: [dws-prov]\n", ""), "pool dws-t4: no AdmissionCheck",
                     more=("--pools", self.shapes(SHAPES)))

    def test_cohorts_lend_nothing_to_each_other(self):
        cohort = ("---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: %s}\n"
                  "spec: {parentName: %s}\n")
        out, _ = self.convert(TEAM + cohort % ("org", "all") + "---" + TEAM.split("---")[2]
                              .replace("name: team", "name: other").replace("org", "alone"))
        self.assertIn("  - name: all\n    limit:\n      h100: 8\n      default: 2\n", out)
        self.assertIn("  - name: alone\n    limit:\n      h100: 8\n      default: 2\n", out)
        self.assertIn("  - name: org\n    parent: all\n  - name", out)

    def test_the_pool_with_more_labels_comes_first(self):
        flavor = ("---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\n"
                  "metadata: {name: %s}\nspec: {nodeLabels: {%s}}\n")
        out, notes = self.convert(flavor % ("od", "gpu: a") + flavor % ("spot", "gpu: a, spot: 'true'") +
                                  flavor % ("again", "gpu: a"), 1)
        self.assertLess(out.index("    flavor: spot"), out.index("    flavor: od"))
        self.assertIn("ResourceFlavor/again: spec.nodeLabels: those of od", notes[0])

    def test_two_names_of_devices_are_one_number(self):
        two = ("resources: [{name: nvidia.com/gpu, nominalQuota: 4}, "
               "{name: amd.com/gpu, nominalQuota: 3, borrowingLimit: 1}]")
        out, _ = self.convert(TEAM.replace(
            'resources: [{name: nvidia.com/gpu, nominalQuota: "2"}]', two))
        self.assertIn("    quota:\n      h100: 8\n      default: 7\n", out)
        self.assertIn("    limit:\n      h100: 12\n      default: 8\n", out)

    def test_the_manual_names_what_has_no_counterpart(self):
        here = os.path.dirname(os.path.abspath(__file__))
        top = os.path.join(here, "..", "..", "..")
        rows = re.findall(r'\{ "(\w+)", "spec\.([\w.\[\]]+)", [^,]+,\s+"',
                          open(os.path.join(top, "gpuq", "import", "import_fields.c")).read())
        page = open(os.path.join(top, "man", "gpuq-import.1.in")).read()
        self.assertGreater(len(rows), 8)
        for kind, path in rows:
            parts = path.split(".")
            self.assertIn(parts[1] if parts[0] == "preemption" else parts[0], page, (kind, path))

    def test_refusals_have_a_place(self):
        cohort = ("apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: %s}\n"
                  "spec: {parentName: %s}\n---\n")
        self.refused(cohort % ("a", "b") + cohort % ("b", "a"), "Cohort/a", "form a cycle")
        self.refused(cohort % ("a" * 64, "b"), "at most 63 characters")
        self.refused(TEAM.replace("LowerPriority}", "Sometimes}"), "reclaimWithinCohort", "not a value of Kueue")
        self.refused(TEAM.replace("cohortName: org", "stopPolicy: Later"), "spec.stopPolicy")
        self.refused("apiVersion: kueue.x-k8s.io/v1beta1\nkind: WorkloadPriorityClass\n"
                     "metadata: {name: x}\nvalue: many\n", "expected a whole number")
        self.refused("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", "there is no ClusterQueue")
        self.refused("- 1\n", "-:1:1: expected an object with a kind")
        self.refused("kind: ClusterQueue\napiVersion: kueue.x-k8s.io/v1beta1\n", "metadata.name")
        self.refused(TEAM.replace("name: h100\n      res", "name: h101\n      res"),
                     "no ResourceFlavor is named h101")
        self.refused(TEAM.replace("nominalQuota: 8", "nominalQuota: many"), "expected a quantity")
        self.refused("apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: {name: l}\n"
                     "spec: {clusterQueue: gone}\n", "no ClusterQueue is named gone")
        self.refused(TEAM + TEAM, "is there twice")
        self.assertEqual(self.run_gpuq("import", "slurm", "-")[0], 2)


if __name__ == "__main__":
    main()
