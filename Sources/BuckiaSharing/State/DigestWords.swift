/// A digest as six words that two people can read to each other.
package enum DigestWords {
  /// How many words stand for a digest: one for each of its first six bytes.
  package static let count = 6

  /// 256 words, sorted: no two begin with the same four letters.
  static let list = """
    acorn actor album alley amber anchor angle apple arena arrow artist aspen atlas attic autumn avenue bacon badge
    bagel baker balcony bamboo banjo barrel basket beacon beetle bench berry bicycle bishop blanket blossom bonfire
    border bottle boulder branch bread bridge broom bubble bucket button cabin cactus camel candle canoe carpet
    castle cedar cello chalk cherry chimney cider cinema circus citrus clay cliff clock cloud clover coast cobalt
    coffee comet compass copper coral cotton cousin crane crayon cricket crown crystal cushion daisy dancer delta
    desert diamond dinner doctor dolphin donkey dragon drum eagle easel echo elbow ember engine envelope evening
    fabric falcon farmer feather fennel ferry fiddle field finger flame flute forest fossil fountain fox frost garden
    garlic gazelle ginger giraffe glacier globe glove goose gravel guitar hammer harbor harvest hazel helmet heron
    hill honey horse hotel hunter igloo indigo island ivory jacket jaguar jasmine jelly jewel jigsaw journal jungle
    kayak kettle kitchen kiwi koala ladder lagoon lantern lava leather lemon letter linen lizard lobster locket
    lumber magnet mango maple marble meadow melon mercury mirror mitten mosaic mountain muffin museum napkin nectar
    needle nickel noodle notebook nutmeg oasis ocean olive onion orange orbit orchid otter oxygen oyster paddle
    palace panda paper parrot pearl pebble pencil pepper piano pickle pigeon pillow pirate planet pocket pony poppy
    potato prairie pumpkin puzzle quartz queen quilt rabbit radio raft rainbow raven ribbon river robin rocket saddle
    salmon sandal scarf shadow silver spider sugar summer sunset table tiger tulip turtle umbrella valley velvet
    violin walnut whale willow window yellow yogurt zebra zipper
    """.split(whereSeparator: \.isWhitespace).map(String.init)

  /// The words of some bytes, a word for each.
  package static func words(_ bytes: some Sequence<UInt8>) -> [String] { bytes.prefix(count).map { list[Int($0)] } }
}
