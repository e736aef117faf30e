package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j/dbtype"
)

var valueScenarios = []scenario{
	{"values-scalar", scalars},
	{"values-integer-64", integers},
	{"values-nested", nested},
	{"values-temporal", temporals},
	{"values-spatial", spatials},
	{"values-stored", stored},
}

// echo sends a value there and back: alone, in a list and in a map.
func echo(value any) {
	same(one("RETURN $v", values{"v": value}), value)
	same(one("RETURN [$v, {k: $v}]", values{"v": value}), []any{value, values{"k": value}})
}

func scalars() {
	long := strings.Repeat("x", 70_000)
	for _, value := range []any{nil, true, false, 1.5, -0.5, math.Inf(1), math.Inf(-1), "", "ä€𝄞\n\"\\", long} {
		echo(value)
	}
	check(math.IsNaN(one("RETURN $v", values{"v": math.NaN()}).(float64)), "not NaN")
	for _, value := range [][]byte{{}, {0, 1, 255}, []byte(long)} {
		echo(value)
	}
}

func integers() {
	echo(int64(0))
	for _, bits := range []int{4, 7, 8, 15, 16, 31, 32, 53, 63} {
		most := int64(uint64(1)<<bits - 1)
		for _, value := range []int64{most, -most, -most - 1} {
			echo(value)
		}
	}
}

func nested() {
	echo([]any{})
	echo(values{})
	echo([]any{int64(1), []any{int64(2), []any{3.5, []any{"x", nil}}}, values{"a": values{"b": []any{values{"c": true}}}}})
	list, entries := []any{}, values{}
	for n := range int64(1000) {
		list = append(list, n)
		entries[fmt.Sprint("k", n%300)] = n
	}
	echo(values{"list": list, "map": entries})
}

func berlin() *time.Location {
	zone, err := time.LoadLocation("Europe/Berlin")
	must(err)
	return zone
}

// moment is a time of a day in a zone.
func moment(zone *time.Location) time.Time {
	return time.Date(2024, 7, 2, 3, 4, 5, 678_000_009, zone)
}

func temporals() {
	offset := time.FixedZone("Offset", 5400)
	day := func(year int, month time.Month, day int) dbtype.Date {
		return dbtype.Date(time.Date(year, month, day, 0, 0, 0, 0, time.UTC))
	}
	for _, value := range []any{
		day(2024, 2, 29), day(1, 1, 1), day(9999, 12, 31),
		dbtype.LocalTime(time.Date(0, 0, 0, 1, 2, 3, 4, time.Local)),
		dbtype.Time(time.Date(0, 0, 0, 23, 59, 59, 999_999_999, offset)),
		dbtype.LocalDateTime(moment(time.Local)), moment(offset), moment(berlin()),
		time.Date(2024, 1, 2, 3, 4, 5, 6, berlin()),
		dbtype.Duration{Months: 14, Days: -3, Seconds: 70, Nanos: 5},
		dbtype.Duration{Seconds: -1, Nanos: 999_999_999}, dbtype.Duration{},
	} {
		got := one("RETURN [$v, {k: $v}]", values{"v": value}).([]any)
		for _, each := range []any{one("RETURN $v", values{"v": value}), got[0], got[1].(values)["k"]} {
			sameTime(each, value)
		}
	}
	row := query("RETURN $v.timezone AS zone, $v.year AS year", values{"v": moment(berlin())})[0]
	same(row.Values, []any{"Europe/Berlin", int64(2024)})
}

// sameTime compares kinds and texts: moments of Go hold pointers to their zones.
func sameTime(got, wanted any) {
	same(fmt.Sprintf("%T", got), fmt.Sprintf("%T", wanted))
	if moment, is := wanted.(time.Time); is {
		check(moment.Equal(got.(time.Time)), "%v is not %v", got, wanted)
		same(got.(time.Time).Format(time.RFC3339Nano), moment.Format(time.RFC3339Nano))
	} else {
		same(fmt.Sprint(got), fmt.Sprint(wanted))
	}
}

func spatials() {
	for _, value := range []any{
		dbtype.Point2D{X: 1, Y: 2, SpatialRefId: 4326}, dbtype.Point3D{X: 1, Y: 2, Z: 3, SpatialRefId: 4979},
		dbtype.Point2D{X: -1.5, Y: 2, SpatialRefId: 7203}, dbtype.Point3D{X: 1, Y: 2, Z: 3, SpatialRefId: 9157},
	} {
		echo(value)
	}
	same(one("RETURN $v.srid", values{"v": dbtype.Point2D{X: 1, Y: 2, SpatialRefId: 4326}}), int64(4326))
}

func stored() {
	properties := values{
		"int": int64(math.MaxInt64), "float": 0.1, "text": "ä", "yes": true, "bytes": []byte{0, 255},
		"duration": dbtype.Duration{Months: 1, Days: 2, Seconds: 3},
		"point":    dbtype.Point2D{X: 1, Y: 2, SpatialRefId: 4326},
		"point3":   dbtype.Point3D{X: 1, Y: 2, Z: 3, SpatialRefId: 9157},
		"ints":     []any{int64(1), int64(2)}, "texts": []any{"a", "b"},
		"points": []any{dbtype.Point2D{X: 3, Y: 4, SpatialRefId: 4326}},
	}
	query("CREATE (n:Stored) SET n = $properties", values{"properties": properties})
	same(one("MATCH (n:Stored) RETURN n", nil).(dbtype.Node).Props, properties)
	times := values{
		"date": dbtype.Date(time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)), "zoned": moment(berlin()),
		"local": dbtype.LocalDateTime(moment(time.Local)),
	}
	query("CREATE (n:StoredTimes) SET n = $times", values{"times": times})
	for key, got := range one("MATCH (n:StoredTimes) RETURN n", nil).(dbtype.Node).Props {
		sameTime(got, times[key])
	}
}
