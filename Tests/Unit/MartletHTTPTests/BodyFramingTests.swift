import Testing

@testable import MartletHTTP

@Suite struct `Properties of a body's framing` {
    /// A framing, and the names of the properties that it has.
    static let framings: [(BodyFraming, [String])] = [
        (.none, ["isEmpty", "isNone"]), (.length(0), ["isEmpty"]), (.length(1), []), (.length(.max), []),
        (.chunked, ["isUnbounded", "isChunked"]), (.untilClose, ["isUnbounded", "isUntilClose"]),
    ]

    @Test(arguments: framings)
    func `follow from its kind and its length`(_ framing: BodyFraming, _ expected: [String]) {
        let properties = [
            ("isEmpty", framing.isEmpty), ("isUnbounded", framing.isUnbounded), ("isNone", framing.isNone),
            ("isChunked", framing.isChunked), ("isUntilClose", framing.isUntilClose),
        ]
        let names = properties.filter { $0.1 }.map { $0.0 }
        #expect(names == expected)
    }

    @Test func `make no two framings equal`() {
        for (left, first) in Self.framings.enumerated() {
            for (right, second) in Self.framings.enumerated() {
                #expect((first.0 == second.0) == (left == right), "\(first.0) and \(second.0)")
            }
        }
    }
}
