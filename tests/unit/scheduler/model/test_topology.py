import numpy as np

from sampan.scheduler.model.topology import domain_sums


def test_each_node_gets_the_sum_of_its_domain_and_those_in_none_get_nothing():
    domains, amounts = np.array([3, 0, 3, -1, 0]), np.array([1, 2, 4, 8, 0])
    assert domain_sums(domains, amounts).tolist() == [5, 2, 5, 0, 2]


def test_no_nodes_and_no_amounts_are_no_trouble():
    assert domain_sums(np.array([], np.int64), np.array([], np.int64)).tolist() == []
    assert domain_sums(np.array([-1, -1]), np.array([5, 5])).tolist() == [0, 0]
