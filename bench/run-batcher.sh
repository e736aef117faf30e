#!/usr/bin/env bash
# The batcher alone: 64-byte messages a second, delivered and every byte verified at the sink, from 1 and 2
# producers, against plain memcpy of 64 bytes into rings of the same size by as many threads, in turns.
# Producer n is pinned to core n; the flusher has the core beside them, or, with two producers on two cores,
# shares theirs.
# Environment: ROUNDS (6), SECS a measurement (2), PARTITION_BYTES (8388608); see servers.sh.
serverless=1
source "$(dirname "$0")/servers.sh"
for (( round = 0; round < ${ROUNDS:-6}; round++ )); do
    "$wsbench" batcher --seconds "${SECS:-2}" --partition-bytes "${PARTITION_BYTES:-8388608}" \
        --round "$round" --pinning pinned --out "$out"
done
report "The batcher alone"
