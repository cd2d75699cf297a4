import MartletCore
import MartletJSON
import Testing

/// An object parsed with its strings as secrets equals the object parsed otherwise.
@Suite struct JSONMemberTests {
    private static let limits = JSONLimits(maximumDepth: 8, maximumBytes: 4096)

    /// The members as one object, or the code of the error.
    private static func members(_ bytes: [UInt8]) -> Result<JSONValue?, JSONError> {
        do throws(JSONError) {
            let members = try JSON.members(of: bytes, limits: limits)
            return .success(
                members.map { members in
                    .object(
                        JSONObject(
                            members.map { member in
                                switch member.value {
                                case .text(let secret):
                                    (member.name, .string(secret.withBytes { String(decoding: $0, as: UTF8.self) }))
                                case .other(let value): (member.name, value)
                                }
                            }))
                })
        } catch {
            return .failure(error)
        }
    }

    private static func expectSame(_ bytes: [UInt8]) {
        let read = Result { () throws(JSONError) in try JSON.parse(bytes, limits: limits) }
        switch (members(bytes), read) {
        case (.success(let members), .success(let value)):
            #expect(members == (value.object == nil ? Optional<JSONValue>.none : value), "\(bytes)")
        case (.failure(let members), .failure(let value)): #expect(members.code == value.code, "\(bytes)")
        default: Issue.record("one of the two refuses \(bytes)")
        }
    }

    @Test func `accepts and rejects what the parser does`() {
        for (text, _) in JSONParserTests.accepted + [("{}", nil), (" {\"a\":\"\\u00e9\\n\"} ", nil)] {
            Self.expectSame(Array(text.utf8))
            Self.expectSame(Array("{\"a\":\(text)}".utf8))
            Self.expectSame(Array("{\"a\":\(text) , \"b\":\"x\"}".utf8))
        }
        for (text, _) in JSONParserTests.rejected {
            Self.expectSame(Array(text.utf8))
            Self.expectSame(Array("{\"b\":\"x\",\"a\":\(text)}".utf8))
        }
        for bytes in JSONParserTests.notUTF8 {
            Self.expectSame(Array("{\"a\":\"".utf8) + bytes + Array("\"}".utf8))
        }
        Self.expectSame([0xEF, 0xBB, 0xBF, 0x7B, 0x7D])
        Self.expectSame([UInt8](repeating: 0x20, count: 5000))
    }

    @Test func `fails on truncated documents as the parser does`() {
        let document = Array(#" {"a":"x\"\\\u0041\ud83d\ude00é","b":[1,{"c":null}],"d":true} "#.utf8)
        for end in document.indices { Self.expectSame(Array(document[..<end])) }
        for index in document.indices {
            for byte in [0x00, 0x22, 0x5C, 0x7D, 0xFF] as [UInt8] {
                var changed = document
                changed[index] = byte
                Self.expectSame(changed)
            }
        }
    }
}
