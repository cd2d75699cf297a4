/// Numbers that a seed decides (SplitMix64), so that the same seed makes the same world.
package struct SeededRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    /// A generator of its own for a part of the world, so that what one part draws does not change the others.
    package init(seed: UInt64, part: StaticString) {
        var state = seed
        part.withUTF8Buffer { for byte in $0 { state = (state ^ UInt64(byte)) &* 0x100_0000_01b3 } }
        self.state = state
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `bound − 1`; 0 for a bound of 0.
    package mutating func below(_ bound: Int) -> Int { bound <= 0 ? 0 : Int(next() % UInt64(bound)) }

    package mutating func within(_ range: ClosedRange<Int>) -> Int {
        range.lowerBound + below(range.upperBound - range.lowerBound + 1)
    }

    /// Whether something happens that happens so many times in a thousand.
    package mutating func chance(_ permille: Int) -> Bool { permille > 0 && below(1000) < permille }

    package mutating func pick<Choice>(_ choices: [Choice]) -> Choice { choices[below(choices.count)] }
}
