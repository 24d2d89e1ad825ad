"""A job with the number that its URL has where the frontier keeps it."""

# The annotations are objects, not strings: the fields are decoded by them.

from trio_crawler.model import Job


class StoredJob(Job, frozen=True, array_like=True):
    """A job with the number of its URL."""

    number: int = 0

    @classmethod
    def of(cls, job: Job, number: int) -> "StoredJob":
        """Return a job with its number."""
        return cls(
            job.url,
            job.depth,
            job.redirects,
            job.referrer,
            job.tries,
            job.purpose,
            job.priority,
            job.validator,
            job.blocked,
            job.again,
            job.repeat,
            job.recalled,
            number,
        )
