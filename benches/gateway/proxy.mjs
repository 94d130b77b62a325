/**
 * The least that a server between client and provider can be: a proxy of node that passes everything on as it comes and looks at nothing.
 * `node proxy.mjs ORIGIN` prints its port.
 */
import { Agent, createServer, request } from 'node:http'

const agent = new Agent({ keepAlive: true })
const upstream = new URL(process.argv[2])

const server = createServer((incoming, response) => {
  const { method, url, rawHeaders: headers } = incoming
  const outgoing = request({ host: upstream.hostname, port: upstream.port, method, path: url, headers, agent }, (answer) => {
    response.writeHead(answer.statusCode, answer.rawHeaders)
    answer.pipe(response)
  })
  incoming.pipe(outgoing)
})
server.keepAliveTimeout = 600_000
server.on('connection', (socket) => socket.setNoDelay(true))
server.listen(0, '127.0.0.1', () => console.log(`port ${server.address().port}`))
