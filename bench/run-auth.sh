#!/usr/bin/env bash
# What a credential costs: the same requests to a server without accounts ("open") and to one with accounts, with
# a token, with an API key and with a password, in turns. Latency and the server's processor time of a request,
# each less that of the open server in the same round. GET /v1/head goes through the general stack, POST /e
# through the lean loop. Environment: ROUNDS (6), SECS measured a run (3), WARMUP (0.5), CONNECTIONS ("1 16"); see
# servers.sh.
source "$(dirname "$0")/servers.sh"
rounds=${ROUNDS:-6}
password=$work/password
(umask 077; head -c 18 /dev/urandom | base64 > "$password")

start open wellspring pinned --threads 1
start closed wellspring pinned --threads 1
url=http://${address[closed]}
"$wellspring" user add bench --role admin --url "$url" --password-file "$password" > /dev/null
basic=$(printf 'bench:%s' "$(cat "$password")" | base64 -w0)
token=$(printf '{"username":"bench","password":"%s"}' "$(cat "$password")" |
    curl --silent --fail --json @- "$url/auth/token" | python3 -c 'import json, sys; print(json.load(sys.stdin)["access_token"])')
key=$(WELLSPRING_TOKEN=$token "$wellspring" token create --role admin --url "$url" 2> /dev/null)

# asked WHO WHAT CONNECTIONS: one run.
asked() {
    local label=closed header=() what=()
    case $1 in
        open) label=open ;;
        token) header=(-H "Authorization: Bearer $token") ;;
        key) header=(-H "X-API-Key: $key") ;;
        password) header=(-H "Authorization: Basic $basic") ;;
    esac
    case $2 in
        head) what=("http://${address[$label]}/v1/head") ;;
        event) what=("http://${address[$label]}/e" -d '{"n":1}') ;;
    esac
    taskset -c "$client_core" "$wellspring" bench "${what[@]}" "${header[@]}" -c "$3" --threads 1 --no-pin \
        -z "${SECS:-3}s" --warmup "$(python3 -c "print(int(float('${WARMUP:-0.5}') * 1000))")ms" \
        --server-pid "${pid[$label]}" --no-headroom --quiet --json "$work/run.json" > /dev/null || true
    ./load_row.py "$work/run.json" who="$1" what="$2" connections="$3" round="$round" >> "$out"
}

for (( round = 0; round < rounds; round++ )); do
    for connections in ${CONNECTIONS:-1 16}; do
        for what in head event; do
            for who in $(in_turns "$round" open token key password); do asked "$who" "$what" "$connections"; done
        done
    done
done

report "What a credential costs"
