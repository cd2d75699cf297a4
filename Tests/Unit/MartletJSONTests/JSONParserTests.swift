import MartletCore
import MartletJSON
import Testing

@Suite struct JSONParserTests {
    static let limits = JSONLimits(maximumDepth: 8, maximumBytes: 4096)

    static func parse(_ text: String) throws(JSONError) -> JSONValue {
        try JSON.parse(Array(text.utf8), limits: limits)
    }

    static let accepted: [(String, JSONValue)] = [
        ("null", nil), ("true", true), (" false\n", false), ("\"\"", ""), ("[]", []), ("{}", [:]),
        ("[ 1 , -2,0 ]", [1, -2, 0]), ("{\"a\":{\"b\":[]}}", ["a": ["b": []]]),
        (#""\"\\\/\b\f\n\r\t\u0041""#, "\"\\/\u{8}\u{C}\n\r\tA"), (#""\ud83d\ude00é""#, "😀é"), (#""\u0000""#, "\u{0}"),
        (#"{"K":1,"\u212A":2}"#, ["K": 1, "\u{212A}": 2]), ("\"\u{7F}\u{2028}\"", "\u{7F}\u{2028}"),
        ("[[[[[[[[]]]]]]]]", [[[[[[[[]]]]]]]]),
    ]

    @Test(arguments: accepted)
    func `accepts what the grammar allows`(text: String, expected: JSONValue) throws {
        #expect(try Self.parse(text) == expected)
    }

    static let rejected: [(String, ErrorCode)] = [
        ("", .jsonUnexpectedEnd), (" ", .jsonUnexpectedEnd), ("{", .jsonUnexpectedEnd), ("[1,", .jsonUnexpectedEnd),
        ("\"a", .jsonUnexpectedEnd), ("\"a\\", .jsonUnexpectedEnd), ("\"\\u00", .jsonUnexpectedEnd),
        ("tru", .jsonUnexpectedEnd),
        ("-", .jsonUnexpectedEnd), ("1.", .jsonUnexpectedEnd), ("1e+", .jsonUnexpectedEnd),
        ("[1,]", .jsonUnexpectedByte), ("{\"a\":1,}", .jsonUnexpectedByte), ("{a:1}", .jsonUnexpectedByte),
        ("[1 2]", .jsonUnexpectedByte),
        ("{\"a\" 1}", .jsonUnexpectedByte), ("'a'", .jsonUnexpectedByte), ("True", .jsonUnexpectedByte),
        ("NaN", .jsonUnexpectedByte),
        ("Infinity", .jsonUnexpectedByte), ("+1", .jsonUnexpectedByte), (".5", .jsonUnexpectedByte),
        ("[1}", .jsonUnexpectedByte),
        ("nul1", .jsonUnexpectedByte), ("/**/1", .jsonUnexpectedByte), ("\u{A0}1", .jsonUnexpectedByte),
        ("{1:1}", .jsonUnexpectedByte),
        ("1 1", .jsonTrailingBytes), ("{}x", .jsonTrailingBytes), ("{}\u{0}", .jsonTrailingBytes),
        ("1x", .jsonTrailingBytes),
        ("01", .jsonBadNumber), ("-01", .jsonBadNumber), ("1.e1", .jsonBadNumber), ("-a", .jsonBadNumber),
        ("1ee1", .jsonBadNumber),
        (#""\x""#, .jsonBadEscape), (#""\u12G4""#, .jsonBadEscape), (#""\u+123""#, .jsonBadEscape),
        (#""\U0041""#, .jsonBadEscape),
        (#""\ud800""#, .jsonLoneSurrogate), (#""\udc00""#, .jsonLoneSurrogate),
        (#""\ud800\u0041""#, .jsonLoneSurrogate),
        (#""\ud800\ud800""#, .jsonLoneSurrogate), (#""\ud800x""#, .jsonLoneSurrogate),
        ("\"a\nb\"", .jsonControlCharacter), ("\"\u{0}\"", .jsonControlCharacter),
        ("\"\\n\u{1F}\"", .jsonControlCharacter),
        ("\u{FEFF}{}", .jsonByteOrderMark), ("{\"a\":1,\"a\":2}", .jsonDuplicateName),
        (#"{"sub":1,"\u0073ub":2}"#, .jsonDuplicateName),
        ("[[[[[[[[[]]]]]]]]]", .jsonTooDeep), ("{\"a\":[[[[[[[{}]]]]]]]}", .jsonTooDeep),
    ]

    @Test(arguments: rejected)
    func `rejects everything else with a specific code`(text: String, code: ErrorCode) {
        #expect { try Self.parse(text) } throws: { ($0 as? JSONError)?.code == code }
    }

    @Test func `counts values and members`() throws {
        let values = JSONLimits(maximumDepth: 8, maximumBytes: 1000, maximumValues: 4)
        for text in ["[1,2,3,4]", #"{"a":[1,2,3]}"#, #"[{"a":1},{"b":2}]"#, "[[[[]]]]"] {
            _ = try JSON.parse(Array(text.utf8), limits: values)
            _ = try JSON.members(of: Array(text.utf8), limits: values)
        }
        for text in ["[1,2,3,4,5]", #"{"a":[1,2,3,4]}"#, #"[{"a":1},{"b":2},3]"#, "[[[[[[]]]]]]"] {
            #expect { try JSON.parse(Array(text.utf8), limits: values) } throws: {
                ($0 as? JSONError)?.code == .jsonTooManyValues
            }
            #expect { try JSON.members(of: Array(text.utf8), limits: values) } throws: {
                ($0 as? JSONError)?.code == .jsonTooManyValues
            }
        }
        let members = JSONLimits(maximumDepth: 8, maximumBytes: 1000, maximumMembers: 2)
        #expect(try JSON.members(of: Array(#"{"a":1,"b":[1,2,3]}"#.utf8), limits: members)?.count == 2)
        #expect { try JSON.members(of: Array(#"{"a":1,"b":2,"c":3}"#.utf8), limits: members) } throws: {
            ($0 as? JSONError)?.code == .jsonTooManyValues
        }
    }

    static let notUTF8: [[UInt8]] = [
        [0x80], [0xC0, 0x80], [0xC3], [0xE0, 0x80, 0xAF], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80],
        [0xF8, 0x88, 0x80, 0x80, 0x80], [0xFF],
    ]

    @Test(arguments: notUTF8)
    func `rejects strings that are not UTF-8`(bytes: [UInt8]) {
        for escape in ["", "\\n"] {
            let document = [0x22] + Array(escape.utf8) + bytes + [0x22]
            #expect { try JSON.parse(document, limits: Self.limits) } throws: {
                ($0 as? JSONError)?.code == .jsonInvalidUTF8
            }
        }
    }

    @Test(arguments: ["\u{80}", "é", "\u{7FF}", "\u{800}", "\u{FFFF}", "\u{10000}", "\u{10FFFF}", "\u{7F}", " "])
    func `accepts every character at every position of a string, and no part of one`(character: String) throws {
        for count in 0...17 {
            for position in 0...count {
                let before = String(repeating: "a", count: position)
                let text = before + character + String(repeating: "z", count: count - position)
                let whole = [0x22] + Array(text.utf8) + [0x22]
                let value = try JSON.parse(whole, limits: Self.limits)
                #expect(value == .string(text))
                #expect(try JSON.parse([0x7B] + whole + Array(":1}".utf8), limits: Self.limits) == [text: 1])
                guard character.utf8.count > 1 else { continue }
                for missing in 0..<character.utf8.count {
                    var cut = whole
                    cut.remove(at: 1 + position + missing)
                    #expect { try JSON.parse(cut, limits: Self.limits) } throws: {
                        ($0 as? JSONError)?.code == .jsonInvalidUTF8
                    }
                }
            }
        }
    }

    @Test func `rejects every control character at every position of a string`() {
        for control in UInt8.min..<0x20 {
            for position in 0...17 {
                var document = [0x22] + [UInt8](repeating: 0x61, count: 17) + [0x22]
                document.insert(control, at: 1 + position)
                #expect { try JSON.parse(document, limits: Self.limits) } throws: {
                    ($0 as? JSONError) == JSONError(.jsonControlCharacter, at: 1 + position)
                }
            }
        }
    }

    @Test func `detects a duplicate name among few and many`() {
        for count in [1, 2, 15, 16, 17, 40] {
            for repeated in 0..<count {
                let names = (0..<count).map { "n\($0)" } + ["n\(repeated)"]
                let text = "{" + names.map { "\"\($0)\":0" }.joined(separator: ",") + "}"
                #expect { try Self.parse(text) } throws: { ($0 as? JSONError)?.code == .jsonDuplicateName }
            }
        }
    }

    @Test func `rejects every truncation of a document`() throws {
        let document = Array(#"{"a":[1.5e-3,true,null,"x\u00e9\n"],"b":{"c":false}}"#.utf8)
        _ = try JSON.parse(document, limits: Self.limits)
        for length in 0..<document.count {
            #expect(throws: JSONError.self) { try JSON.parse(Array(document[..<length]), limits: Self.limits) }
        }
    }

    @Test func `rejects more bytes than the limit before parsing any`() {
        let document = [UInt8](repeating: 0x20, count: 4097)
        #expect { try JSON.parse(document, limits: Self.limits) } throws: { ($0 as? JSONError)?.code == .jsonTooLarge }
    }

    @Test func `survives nesting whatever limit is requested`() {
        let document = [UInt8](repeating: UInt8(ascii: "["), count: 100_000)
        let limits = JSONLimits(maximumDepth: .max, maximumBytes: .max)
        #expect { try JSON.parse(document, limits: limits) } throws: { ($0 as? JSONError)?.code == .jsonTooDeep }
    }

    @Test func `detects a duplicate name at every position among many`() throws {
        let names = (0..<500).map { "\"n\($0)\":\($0)" }
        let limits = JSONLimits(maximumDepth: 8, maximumBytes: 65536)
        let object = try JSON.parse(Array("{\(names.joined(separator: ","))}".utf8), limits: limits)
        #expect(object.object?["n499"]?.int64 == 499)
        for twin in ["n0", "n15", "n16", "n499"] {
            let text = "{\(names.joined(separator: ",")),\"\(twin)\":1}"
            #expect { try JSON.parse(Array(text.utf8), limits: limits) } throws: {
                ($0 as? JSONError)?.code == .jsonDuplicateName
            }
        }
    }

    @Test func `errors have the offset`() {
        #expect(throws: JSONError(.jsonUnexpectedByte, at: 5)) { try Self.parse("[1, 2x").array }
        #expect(throws: JSONError(.jsonDuplicateName, at: 7)) { try Self.parse("{\"a\":1,\"a\":2}") }
    }
}
