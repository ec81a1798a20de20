#!/usr/bin/python3
"""Goal:   the error of a wrong call of torch.distributed on backend "syncopate" says what is wrong and what to do, and the
        call writes to no memory outside its tensors.
Method: backend_misuse_scripts.py under `syncopate run` makes calls that must be refused, and then a valid one.
"""
import pathlib
import unittest

from backend_test import BackendTest

SIZES = {
    "into small": "all_gather_into_tensor expects 40 values of torch.float32 in its output, found 4 of torch.float32: each "
                  "rank has 20 values of torch.float32, so make the output fit",
    "into type": "expects 4 values of torch.float32 in its output, found 4 of torch.int32",
    "of small": "reduce_scatter_tensor expects 40 values of torch.float32 in its input, found 2 of",
    "long list": "all_gather takes one output for each of the 2 ranks of the group, found 3",
    "short list": "all_gather takes one output for each of the 2 ranks of the group, found 1",
    "small place": "all_gather expects 2 values of torch.float32 in its output 1, found 3",
    "place type": "all_gather expects 2 values of torch.float32 in its output 1, found 2 of torch.float64",
    "outputs": "all_gather takes one output for each input, found 1 outputs and 2 inputs",
    "coalesced": "all_gather_coalesced takes one list of outputs for each of the 2 ranks of the group, found 1",
    "parts": "reduce_scatter takes one input for each of the 2 ranks of the group, found 3",
    "small part": "reduce_scatter expects 2 values of torch.float32 in its input 1, found 3",
    "gather": "gather takes one output for each of the 1 ranks of the group, found 2",
    "gather small": "gather expects 2 values of torch.float32 in its output, found 3",
    "scatter": "scatter takes one input for each of the 1 ranks of the group, found 2",
    "scatter small": "scatter expects 30 values of torch.float32 in its input, found 2",
    "exchange": "all_to_all takes one input for each of the 2 ranks of the group, found 1",
    "exchange type": "all_to_all takes tensors of one type, found torch.float32 and torch.float64",
    "splits": r"the 4 rows of all_to_all_single do not divide among 2 ranks as \[1, 2\]",
    "negative": r"the 4 rows of all_to_all_single do not divide among 2 ranks as \[5, -1\]",
    "scalar": "divides the first dimension of a tensor, found one without dimensions",
}


class MisuseTest(BackendTest):
    script = str(pathlib.Path(__file__).with_name("backend_misuse_scripts.py"))

    def expect(self, facts, messages):
        for name, message in messages.items():
            with self.subTest(name):
                self.assertRegex(facts[name], message)


class Arguments(MisuseTest):
    def test_types_and_operations_that_do_not_fit(self):
        for facts in self.facts(self.launch(2, "types_and_operations")):
            self.expect(facts, {
                "dtype": r"found torch\.int16; convert it",
                "mean of truth": r"AVG is for numbers, found torch\.bool; use MAX \(any\) or MIN \(all\)",
                "bits": "reduce integers",
                "complex": "complex values have SUM and AVG, found product: reduce torch.view_as_real",
                "sparse": r"takes dense tensors, found a sparse one: call to_dense\(\)",
                "sparse rows": r"dense tensors and those of torch\.sparse_coo, found torch\.sparse_csr: call to_sparse_coo\(\) or",
                "sparse maximum": r"a sparse tensor has SUM and AVG, found max: call to_dense\(\)",
                "sparse truth": r"AVG is for numbers, found a sparse tensor of torch\.bool: use SUM \(any\)",
                "sparse shapes": r"of one shape, found \[3\] with 1 sparse dimension on rank 0 and \[4\] with 1 sparse dimension on",
                "sparse dimensions": r"found \[3, 2\] with 1 sparse dimension on rank 0 and \[3, 2\] with 2 sparse dimensions on",
                "tag": "from 0 to 4095, found 5000",
                "root": "root -1 is no worker of this group, which has 2",
            })

    def test_tensors_and_lists_that_do_not_fit_are_refused_before_anything_is_sent(self):
        for facts in self.facts(self.launch(2, "sizes")):
            self.assertEqual((facts["overwritten"], facts["afterwards"]), (0, 2))
            self.expect(facts, SIZES)


class Ends(MisuseTest):
    def test_a_destroyed_group_refuses_calls(self):
        message = "this process group has been destroyed; call destroy_process_group after its last collective"
        for facts in self.facts(self.launch(2, "destroyed")):
            self.expect(facts, dict.fromkeys(("collective", "barrier", "message", "evaluation"), message))
            self.assertEqual(facts["evaluated"], [4, 3])

    def test_abort_ends_what_is_under_way(self):
        first, second = self.facts(self.launch(2, "aborted"))
        self.assertEqual((first["error"], second["error"]), ("Cancelled", None))
        for facts in (first, second):
            self.assertFalse(facts["supports"])
            self.expect(facts, dict.fromkeys(("reconfigure", "handle", "option"),
                                             "the members of a process group of syncopate do not change: leave out enable_reconf"))

    def test_a_callback_that_computes_after_the_end_of_its_group(self):
        for facts in self.facts(self.launch(2, "callback_after_the_end")):
            self.expect(facts, {"callback": "this process group has been destroyed"})

    def test_the_end_of_a_group_withdraws_its_receives_and_the_job_goes_on(self):
        withdrawn = "Cancelled: the process group of this receive has been destroyed"
        for facts in self.facts(self.launch(2, "receives_of_a_group_that_ends")):
            self.assertEqual(facts["messages"], [withdrawn, withdrawn, "got it"])
            self.assertEqual(facts["places"], [[0, 0], [0, 0], [1, 1]])
            self.assertEqual((facts["done"], facts["total"]), ([True] * 3, 2))


class Processes(MisuseTest):
    script = str(pathlib.Path(__file__).with_name("backend_process_scripts.py"))

    def test_torch_is_imported_before_or_after(self):
        for first in ("torch", "syncopate_torch"):
            for facts in self.facts(self.launch(2, "order", first)):
                self.assertEqual(facts["sum"], [2, 2, 2])

    def test_a_forked_child_is_told_what_to_do_and_its_parent_goes_on(self):
        for facts in self.facts(self.launch(2, "fork")):
            self.assertRegex(facts["child"], "a forked process cannot use the job .*; call syncopate::init after fork")
            self.assertEqual((facts["sum"], facts["status"]), ([2, 2, 2], 0))


if __name__ == "__main__":
    unittest.main()
