//! Tests of the network as a whole, over real sockets and in memory.
