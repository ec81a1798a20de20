#!/usr/bin/python3
"""Goal:   the examples for Kubernetes have no field that Kubernetes or Kubeflow Trainer does not know, and set what ranks need.
Method: the schemas of both from PyPI.
"""
import pathlib
import unittest

import yaml

from script_cases import needs

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples/kubernetes"
VERSIONS = ("1.28", "1.37")  # of Kubernetes: one of 2023, and the newest
VARIABLES = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}


def documents(name):
    return list(yaml.safe_load_all((EXAMPLES / name).read_text(encoding="utf-8")))


class Kubernetes(unittest.TestCase):
    @needs("kubernetes_validate")
    def test_a_job(self):
        import kubernetes_validate  # noqa: PLC0415

        service, job = documents("job.yaml")
        for document in (service, job):
            for version in VERSIONS:
                with self.subTest(kind=document["kind"], version=version):
                    self.assertEqual(kubernetes_validate.validate(document, version, strict=True), version)
            with self.assertRaises(kubernetes_validate.ValidationError):
                kubernetes_validate.validate({**document, "unknown": 1}, VERSIONS[0], strict=True)

    def test_a_job_numbers_its_pods_as_torch_does(self):
        service, job = documents("job.yaml")
        template = job["spec"]["template"]["spec"]
        [container] = template["containers"]
        given = {variable["name"]: variable.get("value") for variable in container["env"]}
        self.assertLessEqual(VARIABLES, given.keys())
        self.assertEqual(given["WORLD_SIZE"], str(job["spec"]["completions"]))
        self.assertEqual(given["MASTER_ADDR"], f"{job['metadata']['name']}-0.{service['metadata']['name']}")
        self.assertEqual(template["subdomain"], service["metadata"]["name"])
        self.expect_key(container, template["volumes"], given["SYNCOPATE_KEY_FILE"])

    def expect_key(self, container, volumes, path):
        [mount] = container["volumeMounts"]
        [volume] = volumes
        self.assertEqual((path, mount["name"]), (f"{mount['mountPath']}/job.key", volume["name"]))
        self.assertEqual(volume["secret"]["defaultMode"], 0o400)

    @needs("kubeflow_trainer_api")
    def test_a_train_job(self):
        from kubeflow_trainer_api import models  # noqa: PLC0415

        [job] = documents("trainjob.yaml")
        self.assertEqual(models.TrainerV1alpha1TrainJob.from_dict(job).to_dict(), job)
        [patch] = job["spec"]["runtimePatches"]
        [node] = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
        pod = node["template"]["spec"]["template"]["spec"]
        [variable] = job["spec"]["trainer"]["env"]
        self.expect_key(pod["containers"][0], pod["volumes"], variable["value"])


if __name__ == "__main__":
    unittest.main()
