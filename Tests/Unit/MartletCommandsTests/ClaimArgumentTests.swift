import MartletAccounts
import MartletJSON
import Testing

@testable import MartletCommands

@Suite struct ClaimArgumentTests {
    @Test(
        arguments: [
            ("role=staff", "role", "staff"), ("teams=a,b", "teams", ["a", "b"]), ("teams=a,", "teams", ["a", ""]),
            (#"title=Lead\, Berlin"#, "title", "Lead, Berlin"), (#"path=C:\\x\,y,z"#, "path", [#"C:\x,y"#, "z"]),
            (#"path=C:\x"#, "path", #"C:\x"#), (#"end=\"#, "end", #"\"#), ("formula=a=b", "formula", "a=b"),
            ("level:=3", "level", 3), ("on:=true", "on", true), ("zip=10115", "zip", "10115"),
            (#"teams:=["a"]"#, "teams", ["a"]), (#"empty:="""#, "empty", ""), ("gone:=null", "gone", nil),
            ("https://example.com/role=x", "https://example.com/role", "x"),
        ] as [(String, String, JSONValue)])
    func `reads texts, lists and JSON`(argument: String, name: String, value: JSONValue) throws {
        let claim = try ClaimArgument(argument)
        #expect(claim.name == name && claim.value == value)
    }

    @Test(arguments: ["", "role", "role=", "level:=", "level:=x", "level:=[1", "level:={} {}"])
    func `rejects what is no claim`(argument: String) {
        #expect(throws: ClaimArgument.ParseError.self) { try ClaimArgument(argument) }
    }

    @Test func `collects claims to a change, each once`() throws {
        #expect(try ClaimArgument.patch(["a=1", "b:=2"]).changes == ["a": "1", "b": 2])
        #expect(try ClaimArgument.removal(of: ["a", "b"]).changes == ["a": nil, "b": nil])
        for arguments in [["a=1", "a=2"], ["sub=x"], ["a b=1"], ["a:={}"]] {
            #expect(throws: ClaimArgument.ParseError.self) { try ClaimArgument.patch(arguments) }
        }
    }
}
