import MartletProvider
import Testing

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

    @Test func `counts neighbours of one network together and no others`() {
        let network = [UInt8](repeating: 0x20, count: 8)
        let here = ClientNetwork(address: network + [UInt8](repeating: 1, count: 8))
        #expect(here == ClientNetwork(address: network + [UInt8](repeating: 2, count: 8)))
        #expect(here != ClientNetwork(address: [0x21] + network.dropFirst() + [UInt8](repeating: 1, count: 8)))
        let neighbours = [1, 2].map { ClientNetwork(address: Self.mapped([10, 0, 0, $0])) }
        #expect(neighbours[0] != neighbours[1])
        #expect(ClientNetwork(address: Self.mapped([1])) == nil)
    }
}
