"""The first tutorial of neomodel: try_neomodel.py URI DATABASE."""
import sys

from neomodel import (
    IntegerProperty, RelationshipTo, StringProperty, StructuredNode, UniqueIdProperty, db, get_config,
)
from neomodel.exceptions import ConstraintValidationFailed

scheme, address = sys.argv[1].split("://")
get_config().database_url = f"{scheme}://neo4j:ignored@{address}/{sys.argv[2]}"


class Country(StructuredNode):
    code = StringProperty(unique_index=True, required=True)


class City(StructuredNode):
    name = StringProperty(required=True)
    country = RelationshipTo(Country, "FROM_COUNTRY")


class Person(StructuredNode):
    uid = UniqueIdProperty()
    name = StringProperty(unique_index=True)
    age = IntegerProperty(index=True, default=0)
    country = RelationshipTo(Country, "IS_FROM")
    city = RelationshipTo(City, "LIVES_IN")


db.install_all_labels()
jim = Person(name="Jim", age=3).save()
jim.age = 4
jim.save()
germany = Country(code="DE").save()
jim.country.connect(germany)
berlin = City(name="Berlin").save()
berlin.country.connect(germany)
jim.city.connect(berlin)
assert Person.nodes.get(name="Jim").age == 4
assert [p.name for p in Person.nodes.filter(age__gt=3).order_by("-age")] == ["Jim"]
assert jim.country.is_connected(germany) and jim.city.single().name == "Berlin"
with db.transaction:
    Country.get_or_create({"code": "DE"}, {"code": "FR"})
    Person(name="Sue", age=6).save()
    jim.age = 5
    jim.save()
jim.refresh()
assert jim.age == 5 and len(Person.nodes) == 2 and len(Country.nodes) == 2
try:
    Person(name="Jim").save()
except ConstraintValidationFailed:  # with Neo4j's own message, its subclass UniqueProperty
    pass
else:
    raise AssertionError("two Jims")
assert jim.country.disconnect(germany) is None and not jim.country.is_connected(germany)
assert jim.delete() and len(Person.nodes) == 1
print("neomodel:", Person.nodes.first().name)
