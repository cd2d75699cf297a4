import MartletCore
import Testing

@testable import MartletHTTP

@Suite struct ClientCertificateFieldsTests {
    private static func code(_ value: String, isChain: Bool = false) -> ErrorCode? {
        do throws(ClientCertificateFieldError) {
            let value = Array(value.utf8)
            if isChain {
                _ = try ClientCertificateFields.chain(value)
            } else {
                _ = try ClientCertificateFields.certificate(value)
            }
            return nil
        } catch { return error.code }
    }

    @Test func `have certificates as byte sequences`() throws {
        #expect(try ClientCertificateFields.certificate(Array(" :MIIB: ".utf8)) == [0x30, 0x82, 0x01])
        #expect(
            try ClientCertificateFields.chain(Array(":MIIB:, :MIIC:".utf8)) == [
                [0x30, 0x82, 0x01], [0x30, 0x82, 0x02],
            ])
        #expect(try ClientCertificateFields.chain([]) == [])
    }

    @Test(arguments: [
        "", " ", "MIIB", "::", ":MIIB", ":MIIB:;x", ":MIIB:;x=1", ":MIIB:, :MIIC:", ":MI IB:", ":MII:", ":-_-_:",
        "\"MIIB\"", "(:MIIB:)", ":MIIB::", ":MIIB:x", "MIIB%0A", "-----BEGIN CERTIFICATE-----", ":MIIB:\n", "\u{e9}",
    ])
    func `are rejected in any other form`(value: String) {
        #expect(Self.code(value) == .clientCertificateFieldMalformed)
        #expect(Self.code(":MIIB:, \(value)", isChain: true) != nil || value == ":MIIB:, :MIIC:")
    }

    @Test func `are limited in size and number`() {
        func field(_ bytes: Int) -> String {
            ":\(Base64.encode([UInt8](repeating: 0x30, count: bytes), padding: .required)):"
        }
        #expect(Self.code(field(16 * 1024)) == nil)
        #expect(Self.code(field(16 * 1024 + 1)) == .clientCertificateFieldTooLarge)
        #expect(Self.code(field(32 * 1024)) == .clientCertificateFieldTooLarge)
        func chain(_ count: Int) -> String { [String](repeating: ":MIIB:", count: count).joined(separator: ",") }
        #expect(Self.code(chain(8), isChain: true) == nil)
        #expect(Self.code(chain(9), isChain: true) == .clientCertificateFieldTooLarge)
        #expect(Self.code(chain(129), isChain: true) == .clientCertificateFieldTooLarge)
        #expect(Self.code(field(16 * 1024 + 1), isChain: true) == .clientCertificateFieldTooLarge)
    }
}
