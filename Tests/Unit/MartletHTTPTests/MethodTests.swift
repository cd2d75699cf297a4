import MartletHTTP
import Testing

@Suite struct MethodTests {
    @Test func `all but CONNECT, TRACE and unknown ones are common`() {
        #expect(Method.allCases.filter(\.isUncommon) == [.options, .trace, .connect, .other])
    }
}
