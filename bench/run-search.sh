#!/usr/bin/env bash
# Full-text search in a catalogue: ITEMS (1000000) items whose words are drawn from a vocabulary by Zipf are added as
# NDJSON; then SECS (20) s of searches over one connection for each kind of question: one rare word, one of the most
# common, two words, the beginning of a word, one and two letters, a phrase, a slip. Time until the index is there from
# empty and after a restart, memory of the process before and after, bytes of the index, p50 and p99 in ms as the client
# sees them. Needs a program with the feature search (WELLSPRING_BIN); see servers.sh.
plain=yes
source "$(dirname "$0")/servers.sh"
items=${ITEMS:-1000000} secs=${SECS:-20}
start catalogue wellspring pinned
python3 search/fill.py "${address[catalogue]}" "$items" "${pid[catalogue]}" | tee -a "$out"
python3 search/ask.py "${address[catalogue]}" "$secs" | tee -a "$out"
stop catalogue
start catalogue wellspring pinned
python3 search/fill.py "${address[catalogue]}" 0 "${pid[catalogue]}" | tee -a "$out"
