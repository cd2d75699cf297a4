import Testing

@testable import MartletProvider

@Suite struct ClientNetworkTests {
    static func mapped(_ address: [UInt8]) -> [UInt8] { [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF] + address }

    static let networks: [([UInt8], String)] = [
        (mapped([192, 0, 2, 1]), "192.0.2.1"), (mapped([0, 0, 0, 0]), "0.0.0.0"),
        (mapped([255, 255, 255, 255]), "255.255.255.255"),
        ([0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 7] + [UInt8](repeating: 9, count: 8), "2001:db8:0:7::/64"),
        ([UInt8](repeating: 0, count: 15) + [1], "0:0:0:0::/64"),
        ([UInt8](repeating: 0, count: 9) + [1, 0xFF, 0xFF, 1, 2, 3, 4], "0:0:0:0::/64"),
        ([1] + mapped([1, 2, 3, 4]).dropFirst(), "100:0:0:0::/64"),
    ]

    @Test(arguments: networks)
    func `is an IPv4 address or the first half of an IPv6 one`(address: [UInt8], text: String) {
        #expect(ClientNetwork(address: address)?.description == text)
    }

    static func network(_ address: [UInt8]) throws -> ClientNetwork { try #require(ClientNetwork(address: address)) }

    static func subnet(_ bytes: [UInt8]) throws -> ClientNetwork {
        try network(bytes + [UInt8](repeating: 1, count: 16 - bytes.count))
    }

    /// Whether two networks share each block, by position.
    static func shared(_ one: ClientNetwork, _ other: ClientNetwork) -> [Bool] {
        zip(one.blocks, other.blocks).map { $0 == $1 }
    }

    @Test func `has the blocks that contain it`() throws {
        let four = try [[192, 0, 2, 1], [192, 0, 2, 200], [192, 0, 3, 1]].map { try Self.network(Self.mapped($0)) }
        #expect(Self.shared(four[0], four[0]) == [true, true])
        #expect(Self.shared(four[0], four[1]) == [false, true])
        #expect(Self.shared(four[0], four[2]) == [false, false])
        let six = try [
            [0x20, 0x01, 0x0D, 0xB8, 0, 1, 0, 7], [0x20, 0x01, 0x0D, 0xB8, 0, 1, 0, 8],
            [0x20, 0x01, 0x0D, 0xB8, 0, 1, 1, 7], [0x20, 0x01, 0x0D, 0xB8, 0, 2, 0, 7],
        ].map { try Self.subnet($0) }
        #expect(Self.shared(six[0], six[1]) == [false, true, true])
        #expect(Self.shared(six[0], six[2]) == [false, false, true])
        #expect(Self.shared(six[0], six[3]) == [false, false, false])
        #expect(four[0].workOwner != four[1].workOwner && four[0].workOwner != six[0].workOwner)
        #expect(try Self.subnet([0x20, 1]).workOwner == Self.subnet([0x20, 1]).workOwner)
    }

    @Test func `is equal for addresses of one network only`() {
        let network = [UInt8](repeating: 0x20, count: 8)
        let here = ClientNetwork(address: network + [UInt8](repeating: 1, count: 8))
        #expect(here == ClientNetwork(address: network + [UInt8](repeating: 2, count: 8)))
        #expect(here != ClientNetwork(address: [0x21] + network.dropFirst() + [UInt8](repeating: 1, count: 8)))
        let neighbors = [1, 2].map { ClientNetwork(address: Self.mapped([10, 0, 0, $0])) }
        #expect(neighbors[0] != neighbors[1])
        #expect(ClientNetwork(address: Self.mapped([1])) == nil)
    }
}
