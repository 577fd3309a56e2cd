//! What is compared, and what each guarantees while it is measured.

/// One system in one configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum System {
    /// The store in this process, forgetting everything.
    EmbeddedMemory,
    /// The store in this process, on disk.
    EmbeddedDisk,
    /// One server process, on disk.
    OneNode,
    /// Three server processes, on disk.
    ThreeNodes,
    /// Redis as it comes, without its snapshots.
    RedisMemory,
    /// Redis that syncs each command.
    RedisSynced,
    /// Redis that syncs each command, with two replicas that do, and `WAIT 1` after each change.
    RedisReplicated,
    /// Three members.
    Etcd,
}

/// What a system guarantees in the configuration that is measured.
#[derive(Debug, Clone, Copy)]
pub struct Guarantees {
    /// An acknowledged change is on disk.
    pub durable: &'static str,
    /// An acknowledged change is on several nodes.
    pub replicated: &'static str,
    /// Acknowledged changes outlive any one node.
    pub survives_a_node: &'static str,
    /// Reads and changes happen in one order, also across a failure.
    pub linearizable: &'static str,
    /// A grant carries a number that rises, for the resource to check.
    pub fenced: &'static str,
}

impl System {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 8] = [
        Self::EmbeddedMemory,
        Self::EmbeddedDisk,
        Self::OneNode,
        Self::ThreeNodes,
        Self::RedisMemory,
        Self::RedisSynced,
        Self::RedisReplicated,
        Self::Etcd,
    ];

    /// Its name on the command line and in JSON.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::EmbeddedMemory => "embedded-memory",
            Self::EmbeddedDisk => "embedded-disk",
            Self::OneNode => "one-node",
            Self::ThreeNodes => "three-nodes",
            Self::RedisMemory => "redis-memory",
            Self::RedisSynced => "redis-synced",
            Self::RedisReplicated => "redis-replicated",
            Self::Etcd => "etcd",
        }
    }

    /// What it is, in words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::EmbeddedMemory => "lease-store, embedded in memory",
            Self::EmbeddedDisk => "lease-store, embedded on disk",
            Self::OneNode => "lease-store, one node",
            Self::ThreeNodes => "lease-store, three nodes",
            Self::RedisMemory => "Redis, no persistence",
            Self::RedisSynced => "Redis, appendfsync always",
            Self::RedisReplicated => "Redis, 2 replicas, appendfsync always, WAIT 1",
            Self::Etcd => "etcd, three members",
        }
    }

    /// Where an acknowledged change is, in few words.
    #[must_use]
    pub const fn kept(self) -> &'static str {
        match self {
            Self::EmbeddedMemory | Self::RedisMemory => "in memory",
            Self::EmbeddedDisk | Self::OneNode | Self::RedisSynced => "on one disk",
            Self::ThreeNodes | Self::Etcd => "on two disks of three",
            Self::RedisReplicated => "on one disk and in one replica's memory",
        }
    }

    /// What it guarantees.
    #[must_use]
    pub const fn guarantees(self) -> Guarantees {
        match self {
            Self::EmbeddedMemory => Guarantees {
                durable: "no",
                replicated: "no",
                survives_a_node: "no",
                linearizable: "yes",
                fenced: "yes",
            },
            Self::EmbeddedDisk | Self::OneNode => Guarantees {
                durable: "yes",
                replicated: "no",
                survives_a_node: "no (its disk does)",
                linearizable: "yes",
                fenced: "yes",
            },
            Self::ThreeNodes => Guarantees {
                durable: "yes, on a majority",
                replicated: "yes",
                survives_a_node: "yes",
                linearizable: "yes",
                fenced: "yes",
            },
            Self::RedisMemory => Guarantees {
                durable: "no",
                replicated: "no",
                survives_a_node: "no",
                linearizable: "while it runs",
                fenced: "no",
            },
            Self::RedisSynced => Guarantees {
                durable: "yes",
                replicated: "no",
                survives_a_node: "no (its disk does)",
                linearizable: "while it runs",
                fenced: "no",
            },
            Self::RedisReplicated => Guarantees {
                durable: "on the master; a replica has it in memory",
                replicated: "yes, one of two",
                survives_a_node: "not surely: a failover may take the other replica",
                linearizable: "no",
                fenced: "no",
            },
            Self::Etcd => Guarantees {
                durable: "yes, on a majority; renewals no",
                replicated: "yes; renewals no",
                survives_a_node: "yes",
                linearizable: "yes; leases and time aside",
                fenced: "by the key's create revision",
            },
        }
    }

    /// How to get it where it is missing.
    #[must_use]
    pub const fn how_to_get(self) -> &'static str {
        match self {
            Self::EmbeddedMemory | Self::EmbeddedDisk | Self::OneNode | Self::ThreeNodes => {
                "cargo build --release -p lease-store"
            }
            Self::RedisMemory | Self::RedisSynced | Self::RedisReplicated => {
                "apt-get install redis-server, or https://redis.io/download"
            }
            Self::Etcd => "apt-get install etcd-server, or https://github.com/etcd-io/etcd/releases",
        }
    }

    /// Whether it is ours.
    #[must_use]
    pub const fn is_ours(self) -> bool {
        matches!(
            self,
            Self::EmbeddedMemory | Self::EmbeddedDisk | Self::OneNode | Self::ThreeNodes
        )
    }
}
