import MartletCore
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct AddressTextTests {
    @Test(arguments: ["", "unix", "192.0.2.1", "2001:db8::1", "0000:0000:0000:0000:0000:ffff:192.168.100.228"])
    func `a text is unchanged`(text: String) {
        let address = AddressText(text.utf8)
        var out = ByteBuffer()
        out.append("<")
        out.append(address)
        out.append(">")
        #expect(out.array == Array("<\(text)>".utf8))
        #expect(address.array == Array(text.utf8))
        #expect(address.isV6 == text.contains(":"))
    }

    @Test func `a text that is too long is truncated`() {
        let address = AddressText(String(repeating: "1", count: 200).utf8)
        #expect(address.array.count == AddressText.capacity)
    }
}
