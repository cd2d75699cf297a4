import MartletCore
import Testing

@testable import MartletHTTP

@Suite struct StructuredFieldTests {
    enum Kind: Sendable { case item, list, dictionary }

    /// The serialization of what was parsed, or the code of the error.
    private static func read(_ value: String, as kind: Kind) -> String {
        read(Array(value.utf8), as: kind)
    }

    private static func read(_ bytes: [UInt8], as kind: Kind) -> String {
        do throws(StructuredFieldError) {
            var output: [UInt8] = []
            switch kind {
            case .item: try StructuredField.item(bytes).append(to: &output)
            case .list: output = StructuredField.serialized(try StructuredField.list(bytes))
            case .dictionary: output = StructuredField.serialized(try StructuredField.dictionary(bytes))
            }
            return String(decoding: output, as: UTF8.self)
        } catch {
            #expect(error.offset >= 0 && error.offset <= max(bytes.count, StructuredField.maximumBytes))
            return error.code.rawValue.replacing("structured_field.", with: "!")
        }
    }

    @Test(arguments: [
        ("1", "1"), ("  1  ", "1"), ("0", "0"), ("-0", "0"), ("-7", "-7"), ("007", "7"),
        ("999999999999999", "999999999999999"), ("-999999999999999", "-999999999999999"),
        ("1000000000000000", "!bad_number"), ("0000000000000001", "!bad_number"), ("-", "!bad_number"),
        ("--1", "!bad_number"), ("- 1", "!bad_number"), ("+1", "!bad_item"), ("1 2", "!trailing"), ("1,2", "!trailing"),
        ("1e3", "!trailing"), ("0x1", "!trailing"),
        ("1.5", "1.5"), ("1.0", "1.0"), ("1.50", "1.5"), ("1.500", "1.5"), ("1.055", "1.055"), ("0.001", "0.001"),
        ("-0.1", "-0.1"), ("-1.25", "-1.25"), ("00.5", "0.5"), ("123456789012.123", "123456789012.123"),
        ("1.", "!bad_number"), (".5", "!bad_item"), ("1.1234", "!bad_number"), ("1234567890123.1", "!bad_number"),
        ("1.5.5", "!trailing"), ("1.-5", "!bad_number"),
    ])
    func `reads numbers`(value: String, expected: String) { #expect(Self.read(value, as: .item) == expected) }

    @Test(arguments: [
        ("\"\"", "\"\""), ("\"a b\"", "\"a b\""), (#""a\"b\\c""#, #""a\"b\\c""#), ("\"é\"", "!bad_string"),
        (#""a\nb""#, "!bad_string"), (#""a\"#, "!bad_string"), ("\"a", "!bad_string"), ("\"", "!bad_string"),
        ("\"a\tb\"", "!bad_string"), ("\"a\u{0}\"", "!bad_string"), ("\"a\u{7F}\"", "!bad_string"),
        ("\"a\"\"b\"", "!trailing"), ("'a'", "!bad_item"),
        ("a", "a"), ("A1", "A1"), ("*", "*"), ("*a", "*a"), ("a/b:c", "a/b:c"), ("text/html", "text/html"),
        ("a!#$%&'*+-.^_`|~", "a!#$%&'*+-.^_`|~"), ("a\"", "!trailing"), ("a(b)", "!trailing"), ("é", "!bad_item"),
        ("", "!bad_item"), (" ", "!bad_item"), ("\t1", "!bad_item"), ("1\t", "!trailing"), ("_a", "!bad_item"),
        ("::", "::"), (":aGk=:", ":aGk=:"), (":aGVsbG8h:", ":aGVsbG8h:"), (":aGk:", "!bad_bytes"),
        (":aGl=:", "!bad_bytes"), (":aG k=:", "!bad_bytes"), (":_-8=:", "!bad_bytes"), (":aGk=", "!bad_bytes"),
        (":", "!bad_bytes"), (":aGk==:", "!bad_bytes"), (":=:", "!bad_bytes"), (":====:", "!bad_bytes"),
        ("?1", "?1"), ("?0", "?0"), ("?2", "!bad_boolean"), ("?", "!bad_boolean"), ("?T", "!bad_boolean"),
        ("?10", "!trailing"), ("@1659578233", "!bad_item"), ("%\"a\"", "!bad_item"), ("(1)", "!bad_item"),
    ])
    func `reads strings, tokens, byte sequences and booleans`(value: String, expected: String) {
        #expect(Self.read(value, as: .item) == expected)
    }

    @Test(arguments: [
        ("1;a", "1;a"), ("1;a=?1", "1;a"), ("1;a=?0", "1;a=?0"), ("1; a=2;  b=\"x\"", "1;a=2;b=\"x\""),
        ("a;q=0.50;*=b", "a;q=0.5;*=b"), ("1;a_-.*9=1", "1;a_-.*9=1"), ("1;a=1;a=2", "!repeated_key"),
        ("1;a;b;a", "!repeated_key"), ("1;", "!bad_key"), ("1;A=1", "!bad_key"), ("1;9=1", "!bad_key"),
        ("1;a=", "!bad_item"), ("1;a =1", "!trailing"), ("1;a= 1", "!bad_item"), ("1 ;a", "!trailing"),
        ("1;\ta", "!bad_key"), ("1;a=(1)", "!bad_item"), ("1;-a", "!bad_key"),
    ])
    func `reads parameters`(value: String, expected: String) { #expect(Self.read(value, as: .item) == expected) }

    @Test(arguments: [
        ("", ""), ("   ", ""), ("1", "1"), ("1,2", "1, 2"), ("1 , 2", "1, 2"), ("1\t,\t 2", "1, 2"), (" 1, 2 ", "1, 2"),
        ("1,", "!bad_separator"), ("1, ", "!bad_separator"), (",1", "!bad_item"), ("1,,2", "!bad_item"),
        ("1 2", "!bad_separator"), ("1;a,2", "1;a, 2"), ("1,2\t", "!bad_separator"), ("\t1", "!bad_item"),
        ("()", "()"), ("(  )", "()"), ("(1 2)", "(1 2)"), ("( 1  2 )", "(1 2)"), ("(1;a 2);b, 3", "(1;a 2);b, 3"),
        ("(1", "!bad_inner_list"), ("(", "!bad_inner_list"), ("(1,2)", "!bad_inner_list"),
        ("(1\t2)", "!bad_inner_list"),
        ("(1\"a\")", "!bad_inner_list"), ("((1))", "!bad_item"), ("(1)2", "!bad_separator"), (")", "!bad_item"),
        ("(\"a\"\"b\")", "!bad_inner_list"), ("(1 ", "!bad_inner_list"), ("(1;", "!bad_key"),
    ])
    func `reads lists and inner lists`(value: String, expected: String) {
        #expect(Self.read(value, as: .list) == expected)
    }

    @Test(arguments: [
        ("", ""), ("a", "a"), ("a=?1", "a"), ("a;b=1", "a;b=1"), ("a=?1;b", "a;b"), ("a=?0", "a=?0"),
        ("a=1, b=2", "a=1, b=2"), ("a=1 ,\tb", "a=1, b"), ("a=(1 2);x", "a=(1 2);x"), ("a=1;b;c=2,d", "a=1;b;c=2, d"),
        ("a=1,a=2", "!repeated_key"), ("a,a", "!repeated_key"), ("a=1,", "!bad_separator"), ("a=", "!bad_item"),
        ("=1", "!bad_key"), ("A=1", "!bad_key"), ("a =1", "!bad_separator"), ("a= 1", "!bad_item"),
        ("a=1 b=2", "!bad_separator"), ("a=1;;b", "!bad_key"), ("1", "!bad_key"), ("a=1, ,b", "!bad_key"),
        ("sig-b26=:aGk=:", "sig-b26=:aGk=:"), ("*a.b_c-1=tok", "*a.b_c-1=tok"),
    ])
    func `reads dictionaries`(value: String, expected: String) {
        #expect(Self.read(value, as: .dictionary) == expected)
    }

    @Test func `gives the values of items`() throws {
        let item = try StructuredField.item(Array(#""text";n=-12;b=:AQI=:;d=1.25;t=tok;f=?0"#.utf8))
        #expect(item.value.string == "text" && item.value.integer == nil && item.value.bytes == nil)
        #expect(item.parameters["n"]?.integer == -12 && item.parameters["b"]?.bytes == [1, 2])
        #expect(item.parameters["d"] == .decimal(thousandths: 1250) && item.parameters["t"] == .token("tok"))
        #expect(item.parameters["t"]?.string == nil && item.parameters["f"] == .boolean(false))
        #expect(item.parameters["x"] == nil && !item.parameters.isEmpty)
    }

    @Test func `limits sizes and counts`() {
        let most = StructuredField.maximumMembers
        func list(_ count: Int) -> String { (0..<count).map { "a\($0)" }.joined(separator: ",") }
        #expect(Self.read(list(most), as: .list).hasSuffix("a\(most - 1)"))
        #expect(Self.read(list(most + 1), as: .list) == "!too_many")
        #expect(Self.read(list(most), as: .dictionary).hasSuffix("a\(most - 1)"))
        #expect(Self.read(list(most + 1), as: .dictionary) == "!too_many")
        let items = "(" + [String](repeating: "1", count: most).joined(separator: " ")
        #expect(Self.read(items + ")", as: .list).hasSuffix("1 1)"))
        #expect(Self.read(items + " 1)", as: .list) == "!too_many")
        func parameters(_ count: Int) -> String { "1" + (0..<count).map { ";p\($0)" }.joined() }
        #expect(Self.read(parameters(32), as: .item).hasSuffix(";p31"))
        #expect(Self.read(parameters(33), as: .item) == "!too_many")
        let key = String(repeating: "k", count: 64)
        #expect(Self.read(key, as: .dictionary) == key)
        #expect(Self.read(key + "k", as: .dictionary) == "!bad_key")
        let text = "\"" + String(repeating: "x", count: StructuredField.maximumBytes - 2) + "\""
        #expect(Self.read(text, as: .item) == text)
        #expect(Self.read(text + " ", as: .item) == "!too_large")
    }

    @Test func `rejects every byte that is not ASCII text, wherever it stands`() {
        let value = Array("a=(\"b\" c);d=:aGk=:, e;f=1.5".utf8)
        #expect(!Self.read(value, as: .dictionary).hasPrefix("!"))
        for index in 0...value.count {
            for byte: UInt8 in [0x00, 0x0A, 0x0D, 0x1F, 0x7F, 0x80, 0xFF] {
                var changed = value
                changed.insert(byte, at: index)
                #expect(Self.read(changed, as: .dictionary).hasPrefix("!"), "\(byte) at \(index)")
            }
        }
    }
}
