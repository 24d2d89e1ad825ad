"""The frontier: which URLs a crawl has seen, which wait, and when the crawl is over.

This module has all that you need to write your own frontier: the protocol `Frontier`, the records
that it exchanges with a crawler, and the parts that all frontiers share. `Hosts` decides which job
is next and when; `Join` counts the jobs that are not settled; `Seen` decides which URLs are new.
"""

from trio_crawler.frontier.memory import Join, JoinStatistics, Seen, Urls
from trio_crawler.frontier.protocol import Frontier, FrontierStatistics, Past
from trio_crawler.model import Attempt
from trio_crawler.page.urls import seen_key
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.settings import HostStatistics, HostWait
from trio_crawler.schedule.hosts import Hosts, JobChannel
from trio_crawler.schedule.queues import Queue, Seeding
from trio_crawler.settlement import (
    Learned,
    ProbeAnswered,
    Repeated,
    RobotsMissing,
    RobotsMoved,
    RobotsRenewed,
    RobotsRules,
    Settlement,
    SitemapRead,
)

__all__ = [
    "Attempt",
    "Frontier",
    "FrontierStatistics",
    "HostStatistics",
    "HostWait",
    "Hosts",
    "JobChannel",
    "Join",
    "JoinStatistics",
    "Learned",
    "Past",
    "Plan",
    "ProbeAnswered",
    "Queue",
    "Repeated",
    "RobotsMissing",
    "RobotsMoved",
    "RobotsRenewed",
    "RobotsRules",
    "Seeding",
    "Seen",
    "Settlement",
    "SitemapRead",
    "Urls",
    "seen_key",
]
