"""A short run of the soak: `make soak` has the long one."""

from soak import soak


def test_sixty_cells_leave_the_kernel_as_it_was() -> None:
    assert soak(cells=63, seed=2, every=21, rounds=1) == []
