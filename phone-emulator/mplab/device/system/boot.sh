# The device's root folder, made by the first process in its namespaces. Nothing of it is on a disk.
# $1 root  $2 runtime folder of the device (data/, socket/, etc/, bin/; adbd/ with Debian's)  $3 lifeline  $4 host name
# $5 proc/sys/net/mptcp: real | hidden
set -e
root=$1 runtime=$2 lifeline=$3 name=$4 mptcp=$5

mount -t tmpfs -o mode=0755,size=16m system "$root"
cd "$root"
mkdir -p acct apex cache config data dev etc mnt odm oem proc product run storage/self storage/emulated/0 sys \
  system/bin system/xbin system/etc system/app system/lib tmp usr vendor/bin

# The host's programs and libraries, to be read alone: ip, ss, nft, tcpdump, and what they load.
for folder in usr lib lib32 lib64 libx32; do
  if [ -L "/$folder" ]; then cp -P "/$folder" .
  elif [ -d "/$folder" ]; then mkdir -p "$folder"; mount --rbind "/$folder" "$folder"; mount -o remount,bind,ro "$folder" 2>/dev/null || true
  fi
done
ln -s system/bin bin
ln -s system/bin sbin

cp -R "$runtime/etc/." etc/
cp -R "$runtime/bin/." system/bin/
cp -R "$runtime/lib/." system/lib/
if [ -d /etc/alternatives ]; then mkdir -p etc/alternatives; mount --bind /etc/alternatives etc/alternatives; fi

if [ -d "$runtime/adbd" ]; then mkdir -p apex/com.android.adbd; mount --bind "$runtime/adbd" apex/com.android.adbd; fi

mount --bind "$runtime/data" data
mount --bind data/media/0 storage/emulated/0
ln -s /storage/emulated/0 sdcard
ln -s /storage/emulated/0 storage/self/primary

mount -t tmpfs -o mode=0755,size=1m dev dev
mkdir dev/socket dev/pts dev/net
for node in null zero full random urandom tty net/tun; do
  if [ -e "/dev/$node" ]; then touch "dev/$node"; mount --bind "/dev/$node" "dev/$node"; fi
done
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts dev/pts
ln -s /proc/self/fd dev/fd
ln -s pts/ptmx dev/ptmx
mount --bind "$runtime/socket" dev/socket

mount -t proc proc proc
mount -t sysfs sysfs sys 2>/dev/null || mount --rbind /sys sys
if [ "$mptcp" = hidden ]; then
  if [ -d proc/sys/net/mptcp ]; then mount --bind "$runtime/mptcp" proc/sys/net/mptcp; fi
fi
hostname "$name"

pivot_root . mnt
cd /
umount -l mnt
exec /system/bin/applet init "$lifeline"
