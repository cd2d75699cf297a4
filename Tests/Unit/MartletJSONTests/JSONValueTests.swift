import MartletJSON
import Testing

@Suite struct JSONValueTests {
    static let numbers: [(String, Int64?, Double?)] = [
        ("0", 0, 0), ("-0", 0, 0), ("9223372036854775807", .max, 0x1p63), ("-9223372036854775808", .min, -0x1p63),
        ("9223372036854775808", nil, 0x1p63), ("1.0", nil, 1), ("1e3", nil, 1000), ("1E-3", nil, 0.001),
        ("1e999", nil, nil),
        ("-1e999", nil, nil), ("9007199254740993", 9_007_199_254_740_993, 9_007_199_254_740_992),
    ]

    @Test(arguments: numbers)
    func `parses integers exactly and nothing else as integers`(text: String, integer: Int64?, double: Double?) throws {
        let value = try JSONParserTests.parse(text)
        #expect(value.int64 == integer)
        #expect(value.double == double)
    }

    @Test func `writes what it parsed`() throws {
        let text = #"{"a":[1.50,true,null,"x\"\\\n\u0001é😀"],"b":{"c":false},"":[]}"#
        #expect(String(decoding: JSON.write(try JSONParserTests.parse(text)), as: UTF8.self) == text)
    }

    @Test func `writes control characters as escapes`() {
        #expect(JSON.write("\u{8}\t\n\u{C}\r\u{1F}\u{7F}/") == Array(#""\b\t\n\f\r\u001f\u007f/""#.utf8))
    }

    @Test func `rejects doubles that JSON cannot represent`() {
        #expect(JSONNumber(.infinity) == nil)
        #expect(JSONNumber(Double.nan) == nil)
        #expect(JSONNumber(1.5)?.text == "1.5")
    }

    @Test func `finds, replaces, appends and removes members by the bytes of their names`() {
        var object: JSONObject = ["K": 1, "b": 2]
        #expect(object["\u{212A}"] == nil)
        object["K"] = 3
        object["c"] = "x"
        object["b"] = nil
        #expect(object == ["K": 3, "c": "x"])
        #expect(object.count == 2)
        #expect(object.has("K") && !object.has("\u{212A}") && !object.has("b"))
        #expect(JSONObject(members: object.members) == object)
    }

    @Test func `has accessors that never convert`() {
        #expect(JSONValue.string("true").bool == nil)
        #expect(JSONValue.string("1").int64 == nil)
        #expect(JSONValue.bool(true).string == nil)
        #expect(JSONValue.array([]).object == nil)
        #expect(JSONValue.object([:]).array == nil)
        #expect(JSONValue.string("é") != .string("e\u{301}"))
    }
}
