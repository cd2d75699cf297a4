import MartletProxy
import Testing

@testable import MartletServer

@Suite struct `Admin answers` {
    @Test func `problems look like those of the public listener`() {
        let missing = AdminProblem.notFound.response("abc\"1")
        #expect(missing.status == 404)
        #expect(missing.fields.contains { $0 == ("Content-Type", "application/problem+json") })
        #expect(
            String(decoding: missing.body, as: UTF8.self)
                == #"{"type":"urn:martlet:problem:not_found","title":"Not Found","status":404,"code":"not_found","request_id":"abc\"1"}"#
                + "\n")
        let method = AdminProblem.methodNotAllowed.response("x")
        #expect(method.status == 405 && method.fields.contains { $0 == ("Allow", "GET, HEAD") })
    }

    static let answers: [(String, Int?, String)] = [
        ("HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody", 200, "body"), ("HTTP/1.1 503 X\r\n\r\n", 503, ""),
        ("HTTP/1.1 200 OK\r\nA: b\r\n", nil, ""), ("HTTP/1.1 2x0 OK\r\n\r\n", nil, ""),
        ("HTTP/1.1 999 OK\r\n\r\n", nil, ""),
        ("", nil, ""), ("SSH-2.0\r\n\r\n", nil, ""), ("HTTP/1.1 ", nil, ""),
    ]

    @Test(arguments: answers) func `an answer is read or refused`(text: String, status: Int?, body: String) {
        let answer = AdminQuestion.parse(Array(text.utf8))
        #expect(answer?.status == status)
        if status != nil { #expect(answer?.body == Array(body.utf8)) }
    }

    @Test func `the kernel's texts are read, strange ones are not`() {
        let limits =
            "Limit                     Soft Limit           Hard Limit           Units\n"
            + "Max open files            1024                 524288               files\n"
        let status = ProcessStatus(memoryAndThreads: "Name:\tx\nVmRSS:\t    2048 kB\nThreads:\t9\n", limits: limits)
        #expect(status.residentBytes == 2048 * 1024 && status.threads == 9 && status.descriptorLimit == 1024)
        let strange = ProcessStatus(
            memoryAndThreads: "VmRSS:\nThreads: many\n",
            limits: "Max open files            unlimited            unlimited files\n")
        #expect(strange.residentBytes == nil && strange.threads == nil && strange.descriptorLimit == nil)
        let own = ProcessStatus.current()
        #expect((own.residentBytes ?? 0) > 0 && (own.threads ?? 0) > 0 && (own.openDescriptors ?? 0) > 0)
        #expect((own.descriptorLimit ?? 0) > 0 && (own.processorSeconds ?? 0) > 0)
    }
}
